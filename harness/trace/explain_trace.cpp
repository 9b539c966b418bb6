#include "harness/trace/explain_trace.hpp"

#include "common/error.hpp"
#include "common/text.hpp"
#include "harness/trace/findings.hpp"
#include "harness/trace/trace_record.hpp"

namespace verbscope {
namespace {

using driver::Summary;

struct Explained {
  std::string cluster;
  double operations = 0;             // requests; if there are none, received messages
  std::vector<ResourceTime> limits;  // longest first
  std::vector<TraceFinding> findings;

  double mops(const ResourceTime& limit) const { return operations / limit.seconds * 1e-6; }
  double lifted_mops(const TraceFinding& finding) const {
    return mops(limits.front()) * (1 + finding.gain_percent / 100);
  }
};

double operations_of(const Summary& program) {
  std::uint64_t requests = 0, received = 0;
  for (const driver::QueueUse& use : program.uses) {
    for (const driver::CountedRequests& each : use.requests) requests += each.count;
    received += use.received;
  }
  return static_cast<double>(requests > 0 ? requests : received);
}

Explained explained(const Record& record, const std::string& asked) {
  const std::string cluster = asked.empty() ? record.config.value("cluster", "") : asked;
  if (cluster.empty()) {
    fail_usage("--cluster: the trace of {} names no cluster; give one", record.config.value("program", "?"));
  }
  if (!record.result.contains("program")) fail("a trace record without result.program, written by an older verbscope");
  const Summary program = program_from_json(record.result.at("program"), "result.program");
  const Profile profile = load_profile(cluster);
  return {.cluster = profile.name,
          .operations = operations_of(program),
          .limits = limits_of(program, profile),
          .findings = find_costs(program, profile)};
}

std::string limits_text(const Explained& it) {
  const ResourceTime& first = it.limits.front();
  std::string text = fmt::format("On {} the first limit is {}, at {:.4g} Mops (computed)", it.cluster, words_for(first),
                                 it.mops(first));
  if (it.limits.size() > 1) {
    text += fmt::format("; next is {}, at {:.4g} Mops", words_for(it.limits[1]), it.mops(it.limits[1]));
  }
  return text + ".";
}

}  // namespace

bool is_trace(const Record& record) {
  return record.benchmark == "trace";
}

Json explain_trace_json(const Record& record, const std::string& cluster) {
  const Explained it = explained(record, cluster);
  Json limits = Json::array(), findings = Json::array();
  for (const ResourceTime& each : it.limits) limits.push_back({{"words", words_for(each)}, {"mops", it.mops(each)}});
  for (const TraceFinding& each : it.findings) {
    findings.push_back({{"name", each.name},
                        {"text", each.text},
                        {"requests", each.requests},
                        {"gain_percent", each.gain_percent},
                        {"mops", it.lifted_mops(each)},
                        {"then_limit", words_for(each.bound)}});
  }
  return {{"program", record.config.at("program")},
          {"cluster", it.cluster},
          {"limits", std::move(limits)},
          {"findings", std::move(findings)}};
}

std::string explain_trace_text(const Record& record, const std::string& cluster, std::size_t width) {
  const Explained it = explained(record, cluster);
  std::string text = fmt::format("trace of {}\n", record.config.value("program", "?"));
  if (it.limits.empty()) return text + "It posted nothing.\n";
  text += wrap_lines(limits_text(it) + "\n", width);
  for (const TraceFinding& each : it.findings) {
    text += wrap_lines(fmt::format("  {}: {:+.3g} %, {:.4g} Mops at most, then {}\n", each.text, each.gain_percent,
                                   it.lifted_mops(each), words_for(each.bound)),
                       width);
  }
  return it.findings.empty() ? text + "No change of its requests would raise this rate.\n" : text;
}

}  // namespace verbscope
