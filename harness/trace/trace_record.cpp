#include "harness/trace/trace_record.hpp"

#include <algorithm>
#include <iterator>

#include "common/record.hpp"
#include "drivers_patch/counter_report.hpp"
#include "harness/trace/findings.hpp"
#include "harness/trace/trace_text.hpp"

namespace verbscope {
namespace {

using driver::AtomicAddresses;
using driver::ContextSummary;
using driver::CountedRequests;
using driver::PollUse;
using driver::QpFacts;
using driver::QpSummary;
using driver::QueueUse;
using driver::SharedRecvUse;
using driver::Summary;

Json qp_json(const QpSummary& qp) {
  return {{"context", qp.context},
          {"qp_num", qp.qp_num},
          {"type", static_cast<int>(qp.facts.type)},
          {"mtu_bytes", qp.facts.mtu},
          {"recv_sges", qp.facts.max_recv_sge},
          {"reads_at_once", qp.facts.reads_at_once},
          {"doorbell_register", qp.facts.doorbell_register},
          {"shared_register", qp.facts.shared_register}};
}

QpSummary qp_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  QpFacts facts;
  facts.type = static_cast<ibv_qp_type>(fields.require<int>("type", 0, 255));
  facts.mtu = fields.require<std::uint32_t>("mtu_bytes", 256, 4096);
  facts.max_recv_sge = fields.require<std::uint32_t>("recv_sges");
  facts.reads_at_once = fields.require<std::uint32_t>("reads_at_once");
  facts.doorbell_register = fields.require<std::uint32_t>("doorbell_register");
  facts.shared_register = fields.require<bool>("shared_register");
  return {.context = fields.require<std::uint32_t>("context"),
          .qp_num = fields.require<std::uint32_t>("qp_num"),
          .facts = facts,
          .threads = {},
          .sums = {}};
}

Json requests_json(const CountedRequests& counted) {
  return {{"opcode", static_cast<int>(counted.request.opcode)},
          {"flags", counted.request.flags},
          {"sges", counted.request.elements},
          {"bytes", counted.request.length},
          {"offset_bytes", counted.request.offset},
          {"alone", counted.request.alone},
          {"count", counted.count}};
}

CountedRequests requests_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  driver::Request request;
  request.opcode = static_cast<ibv_wr_opcode>(fields.require<int>("opcode", 0, 255));
  request.flags = fields.require<unsigned>("flags");
  request.elements = fields.require<std::uint32_t>("sges");
  request.length = fields.require<std::uint64_t>("bytes");
  request.offset = fields.require<std::uint64_t>("offset_bytes");
  request.alone = fields.require<bool>("alone");
  return {request, fields.require<std::uint64_t>("count")};
}

template <class T>
Json array(const std::vector<T>& values, Json (*write)(const T&)) {
  Json out = Json::array();
  for (const T& value : values) out.push_back(write(value));
  return out;
}

template <class T>
std::vector<T> array_from(JsonFields& fields, const std::string& key, T (*read)(const Json&, const std::string&)) {
  std::vector<T> out;
  const std::string where = fields.where() + ": " + key;
  for (const Json& each : json_value<std::vector<Json>>(fields.at(key), where)) out.push_back(read(each, where));
  return out;
}

Json frequent_json(const AtomicAddresses::Frequent& each) {
  return {{"low_bits", each.low}, {"count", each.count}};
}

AtomicAddresses::Frequent frequent_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  return {.low = fields.require<std::uint64_t>("low_bits"), .count = fields.require<std::uint64_t>("count")};
}

Json use_json(const QueueUse& use) {
  Json frequent = Json::array();
  for (const auto& each : use.atomics.frequent) {
    if (each.count > 0) frequent.push_back(frequent_json(each));
  }
  return {{"qp", use.qp},
          {"thread", use.thread},
          {"requests", array(use.requests, &requests_json)},
          {"lists", use.lists},
          {"turns", use.turns},
          {"send_completions", use.send_completions},
          {"recvs", use.recvs},
          {"recv_posts", use.recv_posts},
          {"received", use.received},
          {"received_bytes", use.received_bytes},
          {"reads_outstanding", use.reads_outstanding},
          {"atomics_noted", use.atomics.noted},
          {"atomic_addresses", std::move(frequent)}};
}

QueueUse use_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  QueueUse use{.qp = fields.require<std::uint32_t>("qp"),
               .thread = fields.require<std::uint32_t>("thread"),
               .requests = array_from(fields, "requests", &requests_from_json),
               .lists = fields.require<std::uint64_t>("lists"),
               .turns = fields.require<std::uint64_t>("turns"),
               .send_completions = fields.require<std::uint64_t>("send_completions"),
               .recvs = fields.require<std::uint64_t>("recvs"),
               .recv_posts = fields.require<std::uint64_t>("recv_posts"),
               .received = fields.require<std::uint64_t>("received"),
               .received_bytes = fields.require<std::uint64_t>("received_bytes"),
               .reads_outstanding = fields.require<std::uint64_t>("reads_outstanding"),
               .atomics = {}};
  use.atomics.noted = fields.require<std::uint64_t>("atomics_noted");
  const auto frequent = array_from(fields, "atomic_addresses", &frequent_from_json);
  if (frequent.size() > std::size(use.atomics.frequent)) fields.fail_key("atomic_addresses", "too many");
  std::ranges::copy(frequent, use.atomics.frequent);
  return use;
}

Json polls_json(const PollUse& use) {
  return {{"thread", use.thread},
          {"polls", use.polls},
          {"empty", use.empty},
          {"in_passing", use.in_passing},
          {"polled", use.polled}};
}

PollUse polls_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  return {.thread = fields.require<std::uint32_t>("thread"),
          .polls = fields.require<std::uint64_t>("polls"),
          .empty = fields.require<std::uint64_t>("empty"),
          .in_passing = fields.require<std::uint64_t>("in_passing"),
          .polled = fields.require<std::uint64_t>("polled")};
}

Json shared_recvs_json(const SharedRecvUse& use) {
  return {{"thread", use.thread}, {"recvs", use.recvs}, {"recv_posts", use.recv_posts}};
}

SharedRecvUse shared_recvs_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  return {.thread = fields.require<std::uint32_t>("thread"),
          .recvs = fields.require<std::uint64_t>("recvs"),
          .recv_posts = fields.require<std::uint64_t>("recv_posts")};
}

Json context_json(const ContextSummary& context) {
  return {{"late_registrations", context.late_registrations}, {"late_pages", context.late_pages}};
}

ContextSummary context_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  ContextSummary context;
  context.late_registrations = fields.require<std::uint64_t>("late_registrations");
  context.late_pages = fields.require<std::uint64_t>("late_pages");
  return context;
}

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

Json program_json(const Summary& program) {
  return {{"qps", array(program.qps, &qp_json)},
          {"queue_uses", array(program.uses, &use_json)},
          {"poll_uses", array(program.poll_uses, &polls_json)},
          {"shared_recv_uses", array(program.shared_recv_uses, &shared_recvs_json)},
          {"contexts", array(program.contexts, &context_json)}};
}

Summary program_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  Summary program;
  program.qps = array_from(fields, "qps", &qp_from_json);
  program.uses = array_from(fields, "queue_uses", &use_from_json);
  program.poll_uses = array_from(fields, "poll_uses", &polls_from_json);
  program.shared_recv_uses = array_from(fields, "shared_recv_uses", &shared_recvs_from_json);
  program.contexts = array_from(fields, "contexts", &context_from_json);
  for (const QueueUse& use : program.uses) {
    if (use.qp >= program.qps.size()) fail("{}: queue_uses: no QP {}", where, use.qp);
  }
  return program;
}

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
