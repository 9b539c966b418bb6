#include "harness/trace/trace_text.hpp"

#include <fmt/ranges.h>
#include <x86intrin.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <vector>

#include "common/error.hpp"
#include "drivers_patch/counter_report.hpp"
#include "harness/trace/findings.hpp"

namespace verbscope {
namespace {

using driver::CheckSummary;
using driver::Difference;
using driver::DifferenceExample;
using driver::QueueMemory;
using driver::Summary;

struct DifferenceFacts {
  Difference value;
  std::string_view name;  // in records
  std::string_view text;
  std::string_view unit;  // of the computed and the found value
};

constexpr EnumTable<Difference, DifferenceFacts> kDifferenceFacts{{
    {Difference::opcode, "opcode", "another opcode", ""},
    {Difference::size, "size", "another size", " B"},
    {Difference::signaled, "signaled", "signaled or not", ""},
    {Difference::fence, "fence", "fenced or not", ""},
    {Difference::solicited, "solicited", "solicited or not", ""},
    {Difference::inline_bytes, "inline_bytes", "other inline data", " B"},
    {Difference::position, "position", "another end of the post", ""},
}};
static_assert(in_order(kDifferenceFacts));

const driver::RefusalFacts& refusal_of(std::size_t kind) {
  return driver::kRefusals[kind - driver::kPlainDifferences];
}

std::string_view name_of(std::size_t kind) {
  return kind < driver::kPlainDifferences ? kDifferenceFacts[kind].name : refusal_of(kind).name;
}

std::string device_of(const Summary& process, std::uint32_t context) {
  const auto found = std::ranges::find(process.contexts, context, &driver::ContextSummary::number);
  return found == process.contexts.end() ? fmt::format("context {}", context) : found->device;
}

std::string reason_of(const Summary& process, const CheckSummary& checks) {
  if (checks.memory == QueueMemory::other_adapter) return "the adapter is none of mlx4 and mlx5";
  const auto found = std::ranges::find(process.contexts, checks.context, &driver::ContextSummary::number);
  const auto family = found == process.contexts.end() ? NicFamily::mlx5 : found->family;
  return fmt::format("the program has no {}dv_init_obj", to_string(family));
}

std::string figures_text(std::size_t kind, const DifferenceExample& example) {
  if (kind >= driver::kPlainDifferences) return "";
  if (static_cast<Difference>(kind) == Difference::opcode) {
    return fmt::format(": {} expected, {} written", driver::opcode_text(example.expected),
                       driver::opcode_text(example.found));
  }
  const std::string_view unit = kDifferenceFacts[kind].unit;
  return fmt::format(": {}{} expected, {}{} written", example.expected, unit, example.found, unit);
}

std::string difference_text(std::size_t kind, const CheckSummary::Found& found) {
  const std::string_view what = kind < driver::kPlainDifferences ? kDifferenceFacts[kind].text : refusal_of(kind).text;
  std::string text = fmt::format("    {} {}: {}", found.count, found.count == 1 ? "WQE" : "WQEs", what);
  if (!found.filled) return text + "\n";
  const DifferenceExample& first = found.example;
  return text + fmt::format("; the first of QP {:#08x} at {}, {} of {} B in {} element{}{}\n", first.qp_num,
                            first.position, driver::opcode_text(first.opcode), first.length, first.elements,
                            first.elements == 1 ? "" : "s", figures_text(kind, first));
}

std::string checks_text(const Summary& process, const CheckSummary& checks) {
  const std::string device = device_of(process, checks.context);
  if (checks.memory != QueueMemory::readable) {
    return fmt::format("  verified     {}: queue memory is not readable: {}\n", device, reason_of(process, checks));
  }
  const auto differs = [](const CheckSummary::Found& found) { return found.count > 0; };
  const bool right = checks.wqes > 0 && std::ranges::none_of(checks.differences, differs);
  std::string text = fmt::format("  verified     {}: {} WQEs{}", device, checks.wqes, right ? ", all as expected" : "");
  if (checks.left_out > 0) text += fmt::format("; {} skipped", checks.left_out);
  if (checks.without_memory > 0) {
    text += fmt::format("; {} QPs without readable memory ({})", checks.without_memory,
                        errno_text(static_cast<int>(checks.first_error)));
  }
  text += "\n";
  for (std::size_t kind = 0; kind < driver::kDifferences; ++kind) {
    if (differs(checks.differences[kind])) text += difference_text(kind, checks.differences[kind]);
  }
  return text;
}

Json example_json(std::size_t kind, const DifferenceExample& example) {
  Json out = {{"qp_num", example.qp_num},
              {"position", example.position},
              {"opcode", driver::opcode_text(example.opcode)},
              {"sges", example.elements},
              {"payload_bytes", example.length}};
  if (kind >= driver::kPlainDifferences) return out;
  const bool opcodes = static_cast<Difference>(kind) == Difference::opcode;
  out["reckoned"] = opcodes ? Json(driver::opcode_text(example.expected)) : Json(example.expected);
  out["written"] = opcodes ? Json(driver::opcode_text(example.found)) : Json(example.found);
  return out;
}

Json differences_json(const CheckSummary& checks) {
  Json out = Json::object();
  for (std::size_t kind = 0; kind < driver::kDifferences; ++kind) {
    const CheckSummary::Found& found = checks.differences[kind];
    if (found.count == 0) continue;
    Json& of_kind = out[std::string(name_of(kind))];
    of_kind = {{"count", found.count}};
    if (found.filled) of_kind["example"] = example_json(kind, found.example);
  }
  return out;
}

using driver::PcieCost;
using driver::Sums;

constexpr std::size_t kMaxListedQps = 8;  // listed one by one

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string opcodes_text(const Sums& sums) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < driver::kOpcodes; ++i) {
    if (sums.sends.by_opcode[i] > 0)
      parts.push_back(fmt::format("{} {}", sums.sends.by_opcode[i], driver::opcode_text(i)));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string requests_text(const Sums& sums, double active_s) {
  const auto& sends = sums.sends;
  std::string text = fmt::format("  requests     {}", opcodes_text(sums));
  if (active_s > 0) text += fmt::format("; {:.4g} Mops", static_cast<double>(sums.requests()) / active_s * 1e-6);
  text +=
      fmt::format("\n               {} signaled, {} inline, {} fenced; {} B of payload, {:.4g} each\n", sends.signaled,
                  sends.inlined, sends.fenced, sends.payload_bytes, ratio(sends.payload_bytes, sums.requests()));
  return text;
}

std::string posts_text(const Sums& sums) {
  std::string text = fmt::format("  posts        {} of one request", sums.sends.alone);
  if (sums.lists > 0) {
    text += fmt::format(", {} lists of {:.4g} on average", sums.lists,
                        ratio(sums.requests() - sums.sends.alone, sums.lists));
  }
  if (sums.failed_posts > 0) text += fmt::format(", {} refused", sums.failed_posts);
  return text + "\n";
}

std::string recvs_text(const Sums& sums) {
  if (sums.recvs.recvs + sums.received.completions == 0) return "";
  return fmt::format("  RECVs        {} posted by {} posts; {} used, {} B\n", sums.recvs.recvs, sums.recvs.posts,
                     sums.received.completions, sums.received.payload_bytes);
}

std::string polls_text(const Sums& sums) {
  std::string text =
      fmt::format("  completions  {} of sends, {} of RECVs", sums.send_completions, sums.received.completions);
  for (std::size_t i = 1; i < driver::kStatuses; ++i) {
    if (sums.by_status[i] > 0) {
      text += fmt::format(", {} \"{}\"", sums.by_status[i], "status " + std::to_string(i));
    }
  }
  text += fmt::format("\n  polls        {} with {:.4g} on average, {} empty", sums.polls,
                      ratio(sums.polled, sums.polls), sums.empty_polls);
  if (sums.arms > 0) text += fmt::format(", {} times armed", sums.arms);
  return text + "\n";
}

std::string time_text(const Sums& sums, const TickRate& ticks) {
  if (sums.samples == 0) return "";
  return fmt::format(
      "  time         from post to completion: half below {:.3g} us, 99 % below {:.3g} us ({} samples)\n",
      time_below_ns(sums, 0.5, ticks) * 1e-3, time_below_ns(sums, 0.99, ticks) * 1e-3, sums.samples);
}

std::string pcie_text(const Summary& process) {
  const Sums& sums = process.whole;
  if (!process.wire.known)
    return "  PCIe         not computed: the adapter is neither mlx4 nor mlx5; --nic selects a family\n";
  std::string text = fmt::format("  as {}{}   {} BlueFlame writes, {} doorbells; WQEs of {:.4g} B in {:.4g} blocks\n",
                                 to_string(process.wire.family), process.wire.computed ? " (computed)" : "",
                                 sums.sends.blueflames, sums.doorbells(), ratio(sums.sends.wqe_bytes, sums.requests()),
                                 ratio(sums.sends.wqe_blocks, sums.requests()));
  std::vector<std::uint64_t> least, most;
  PcieCounts::each(sums.pcie.least, [&least](const char*, std::uint64_t value) { least.push_back(value); });
  PcieCounts::each(sums.pcie.most, [&most](const char*, std::uint64_t value) { most.push_back(value); });
  std::size_t i = 0;
  text += "  PCIe         by the driver, and as the adapter chooses\n";
  PcieCounts::each(sums.pcie.exact, [&](const char* name, std::uint64_t exact) {
    text += fmt::format("    {:<24} {:>14}", name, exact);
    if (most[i] > 0) text += fmt::format("   {} to {}", least[i], most[i]);
    text += "\n";
    ++i;
  });
  return text;
}

std::string contexts_text(const Summary& process) {
  std::string text;
  for (const driver::ContextSummary& each : process.contexts) {
    text += fmt::format("  {:<12} {} QPs and {} CQs made; {} registrations of {} B in {} pages\n", each.device,
                        each.qps_made, each.cqs_made, each.registrations, each.registered_bytes, each.registered_pages);
  }
  return text;
}

std::string qps_text(const Summary& process) {
  std::string text;
  std::size_t shown = 0;
  for (const driver::QpSummary& qp : process.qps) {
    if (qp.sums.requests() + qp.sums.recvs.recvs + qp.sums.received.completions == 0) continue;
    if (shown++ == kMaxListedQps) {
      text += "  and more QPs\n";
      break;
    }
    text += fmt::format("  QP {:#08x}  {}, {}{}: {} requests, {} RECVs used\n", qp.qp_num, qp_type_text(qp.facts.type),
                        qp.builder ? "builder" : "ibv_post_send",
                        qp.threads.size() > 1 ? fmt::format(", {} threads", qp.threads.size()) : "", qp.sums.requests(),
                        qp.sums.received.completions);
  }
  return text;
}

std::string findings_text(const Summary& process, const Profile& profile) {
  std::string text;
  for (const TraceFinding& each : find_costs(process, profile)) {
    text += fmt::format("  finding      {} ({}): on {} up to {:+.3g} %, then {} is the limit\n", each.text, each.name,
                        profile.name, each.gain_percent, words_for(each.bound));
  }
  return text;
}

}  // namespace

std::string verified_text(const Summary& process) {
  std::string text;
  for (const CheckSummary& each : process.checks) text += checks_text(process, each);
  return text;
}

Json verified_json(const Summary& process) {
  Json out = Json::array();
  for (const CheckSummary& each : process.checks) {
    Json context = {{"device", device_of(process, each.context)}};
    if (each.memory != QueueMemory::readable) {
      context["no_memory"] = reason_of(process, each);
    } else {
      context["wqes"] = each.wqes;
      context["left_out"] = each.left_out;
      context["qps_without_memory"] = each.without_memory;
      context["differences"] = differences_json(each);
    }
    out.push_back(context);
  }
  return out;
}

std::string qp_type_text(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_DRIVER:
      return "DRIVER";
    default:
      return fmt::format("type {}", static_cast<int>(type));
  }
}

TickRate tick_rate_since(const Summary& process) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double ns =
      static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec) - static_cast<double>(process.began_ns);
  return {ns > 0 ? static_cast<double>(__rdtsc() - process.began_ticks) / ns : 1};
}

double time_below_ns(const Sums& sums, double share, const TickRate& ticks) {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(sums.samples)));
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i < driver::kTimeClasses; ++i) {
    passed += sums.by_time[i];
    if (passed > 0 && passed >= wanted) return std::ldexp(1, static_cast<int>(i)) / ticks.ticks_per_ns;
  }
  return 0;
}

std::string trace_text(const Summary& process, const TickRate& ticks, double active_s, const Profile* profile) {
  std::string text = fmt::format("{} (process {})", process.program, process.process);
  if (active_s > 0) text += fmt::format(", {:.3g} s of traffic", active_s);
  text += "\n" + requests_text(process.whole, active_s) + posts_text(process.whole) + recvs_text(process.whole) +
          polls_text(process.whole) + time_text(process.whole, ticks) + pcie_text(process) + contexts_text(process) +
          qps_text(process) + verified_text(process);
  if (profile != nullptr) text += findings_text(process, *profile);
  if (process.without_room > 0)
    text += fmt::format("  {} objects had no room for counts of their own\n", process.without_room);
  return text;
}

}  // namespace verbscope
