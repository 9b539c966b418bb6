#include "harness/trace/verified.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "drivers_patch/counter_report.hpp"
#include "harness/trace/trace_text.hpp"

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
    return fmt::format(": {} reckoned, {} written", driver::opcode_text(example.reckoned),
                       driver::opcode_text(example.found));
  }
  const std::string_view unit = kDifferenceFacts[kind].unit;
  return fmt::format(": {}{} reckoned, {}{} written", example.reckoned, unit, example.found, unit);
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
  if (checks.memory != QueueMemory::there) {
    return fmt::format("  verified     {}: no queue memory to look at: {}\n", device, reason_of(process, checks));
  }
  const auto differs = [](const CheckSummary::Found& found) { return found.count > 0; };
  const bool right = checks.wqes > 0 && std::ranges::none_of(checks.differences, differs);
  std::string text = fmt::format("  verified     {}: {} WQEs{}", device, checks.wqes, right ? ", all as reckoned" : "");
  if (checks.left_out > 0) text += fmt::format("; {} not looked at", checks.left_out);
  if (checks.without_memory > 0) {
    text += fmt::format("; {} QPs without memory to look at ({})", checks.without_memory,
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
  out["reckoned"] = opcodes ? Json(driver::opcode_text(example.reckoned)) : Json(example.reckoned);
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
    if (each.memory != QueueMemory::there) {
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

}  // namespace verbscope
