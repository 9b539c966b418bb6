#include "harness/trace/trace_record.hpp"

#include "common/environment.hpp"
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

Json opcodes(const Sums& sums) {
  Json out = Json::object();
  for (std::size_t i = 0; i < driver::kOpcodes; ++i) {
    if (sums.sends.by_opcode[i] > 0) out[opcode_text(i)] = sums.sends.by_opcode[i];
  }
  return out;
}

Json sums_json(const Sums& sums) {
  return {{"requests", sums.requests()},
          {"by_opcode", opcodes(sums)},
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

Json events_json(const PcieCounts& counts) {
  Json out = Json::object();
  PcieCounts::each(counts, [&out](const char* name, std::uint64_t value) { out[name] = value; });
  return out;
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

std::string blind_of(const Summary& process) {
  std::string blind =
      "what the adapter reads and writes for requests of peers, and its reads of QP contexts and translations";
  if (!process.wire.known) blind += "; PCIe: the adapter is none of mlx4 and mlx5";
  if (process.wire.computed) {
    blind += fmt::format("; the device is no {}: PCIe is computed", to_string(process.wire.family));
  }
  return blind;
}

CounterReport report_of(const Summary& process, double active_s) {
  const driver::PcieCost& cost = process.whole.pcie;
  CounterReport report{
      .source = "driver", .node = "server", .blind = blind_of(process), .window_s = active_s, .events = cost.exact};
  const Json most = events_json(cost.most);
  for (const auto& [name, value] : most.items()) {
    if (!process.wire.known || value != 0) report.unseen.push_back(name);
  }
  report.extra = {{"process", process.process},
                  {"computed", process.wire.computed},
                  {"exact", events_json(cost.exact)},
                  {"adapter_decides_least", events_json(cost.least)},
                  {"adapter_decides_most", most},
                  {"blueflames", process.whole.sends.blueflames},
                  {"doorbells", process.wire.known ? process.whole.doorbells() : 0},
                  {"objects_without_room", process.without_room},
                  {"qps", qps_json(process)},
                  {"threads", threads_json(process)}};
  if (!process.checks.empty()) report.extra["verified"] = verified_json(process);
  if (process.wire.known) report.extra["nic_family"] = to_string(process.wire.family);
  return report;
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
  record.counters.push_back(report_of(process, active_s));
  record.environment = make_environment("verbs", setting.command_line);
  return record;
}

}  // namespace verbscope
