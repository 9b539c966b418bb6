#include "harness/trace/trace_record.hpp"

#include "common/record.hpp"
#include "drivers_patch/counter_report.hpp"
#include "harness/trace/findings.hpp"
#include "harness/trace/program_json.hpp"
#include "harness/trace/verified.hpp"

namespace verbscope {
namespace {

using driver::Summary;
using driver::Sums;

template <std::size_t size>
Json classes(const std::uint64_t (&counts)[size]) {
  Json out = Json::array();
  for (const std::uint64_t count : counts) out.push_back(count);
  while (out.size() > 1 && out.back() == 0) out.erase(out.size() - 1);
  return out;
}

Json sums_json(const Sums& sums) {
  return {{"requests", sums.requests()},
          {"by_opcode", driver::by_opcode_json(sums.sends.by_opcode)},
          {"by_size_class", classes(sums.sends.by_size)},
          {"signaled", sums.sends.signaled},
          {"inlined", sums.sends.inlined},
          {"fenced", sums.sends.fenced},
          {"sges", sums.sends.elements},
          {"payload_bytes", sums.sends.payload_bytes},
          {"inline_bytes", sums.sends.inline_bytes},
          {"posts", sums.posts()},
          {"posts_alone", sums.sends.alone},
          {"by_list_class", classes(sums.by_list)},
          {"failed_posts", sums.failed_posts},
          {"wqe_bytes", sums.sends.wqe_bytes},
          {"wqe_blocks", sums.sends.wqe_blocks},
          {"recvs", sums.recvs.recvs},
          {"recv_posts", sums.recvs.posts},
          {"by_recv_list_class", classes(sums.recvs.by_list)},
          {"send_completions", sums.send_completions},
          {"recv_completions", sums.received.completions},
          {"received_bytes", sums.received.payload_bytes},
          {"errors", sums.errors()},
          {"by_status", classes(sums.by_status)}};
}

Json qps_json(const Summary& process) {
  Json out = Json::array();
  for (const driver::QpSummary& qp : process.qps) {
    Json each = sums_json(qp.sums);
    each["qp_num"] = qp.qp_num;
    each["type"] = qp_type_text(qp.facts.type);
    each["mtu_bytes"] = qp.facts.mtu;
    each["builder"] = qp.builder;
    each["threads"] = qp.threads;
    each["doorbell_register"] = qp.facts.doorbell_register;
    each["shared_register"] = qp.facts.shared_register;
    out.push_back(each);
  }
  return out;
}

Json threads_json(const Summary& process) {
  Json out = Json::array();
  for (const driver::ThreadSummary& thread : process.threads) {
    Json each = sums_json(thread.sums);
    each["number"] = thread.number;
    each["tid"] = thread.tid;
    each["empty_polls"] = thread.sums.empty_polls;
    each["polls"] = thread.sums.polls;
    out.push_back(each);
  }
  return out;
}

CounterReport report_of(const Summary& process, double active_s) {
  CounterReport report = driver::counter_report(process.wire, process.whole, active_s);
  report.node = "server";
  report.extra["process"] = process.process;
  report.extra["objects_without_room"] = process.without_room;
  report.extra["qps"] = qps_json(process);
  report.extra["threads"] = threads_json(process);
  if (!process.checks.empty()) report.extra["verified"] = verified_json(process);
  return report;
}

Json findings_json(const Summary& process, const Profile& profile) {
  Json out = Json::array();
  for (const TraceFinding& each : find_costs(process, profile)) {
    out.push_back({{"name", each.name},
                   {"text", each.text},
                   {"requests", each.requests},
                   {"gain_percent", each.gain_percent},
                   {"then_limit", words_for(each.bound)}});
  }
  return out;
}

Json contexts_json(const Summary& process) {
  Json out = Json::array();
  for (const driver::ContextSummary& each : process.contexts) {
    out.push_back({{"device", each.device},
                   {"qps_made", each.qps_made},
                   {"cqs_made", each.cqs_made},
                   {"registrations", each.registrations},
                   {"deregistrations", each.deregistrations},
                   {"registered_bytes", each.registered_bytes},
                   {"registered_pages", each.registered_pages},
                   {"address_handles", each.address_handles}});
  }
  return out;
}

}  // namespace

Record trace_record(const Summary& process, const TraceSetting& setting, const std::string& part, double active_s) {
  Record record;
  record.benchmark = "trace";
  record.config = {
      {"program", setting.arguments.front()}, {"arguments", setting.arguments}, {"nic", setting.nic}, {"part", part}};
  if (setting.profile != nullptr) record.config["cluster"] = setting.profile->name;
  record.result = sums_json(process.whole);
  const TickRate ticks = tick_rate_since(process);
  if (active_s > 0) {
    record.result["rate_mops"] = static_cast<double>(process.whole.requests()) / active_s * 1e-6;
  }
  record.result["active_s"] = active_s;
  record.result["polls"] = process.whole.polls;
  record.result["empty_polls"] = process.whole.empty_polls;
  record.result["by_batch_class"] = classes(process.whole.by_batch);
  record.result["armed"] = process.whole.arms;
  record.result["lat_samples"] = process.whole.samples;
  if (process.whole.samples > 0) {
    record.result["lat_p50_below_ns"] = time_below_ns(process.whole, 0.5, ticks);
    record.result["lat_p99_below_ns"] = time_below_ns(process.whole, 0.99, ticks);
  }
  record.result["contexts"] = contexts_json(process);
  record.result["program"] = program_json(process);
  if (setting.profile != nullptr) record.result["findings"] = findings_json(process, *setting.profile);
  record.counters.push_back(report_of(process, active_s));
  record.environment = make_environment("verbs", setting.command_line);
  return record;
}

}  // namespace verbscope
