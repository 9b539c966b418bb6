#include "pcie_model/wqe_size.hpp"

#include <algorithm>
#include <bit>

#include "common/error.hpp"

namespace verbscope {
namespace {

// Bytes of a WQE that precede its data.
std::uint64_t fixed_bytes(const WqeLayout& layout) {
  return (layout.control + layout.address + layout.remote_address + layout.atomic).value;
}

std::uint64_t inline_chunks(std::uint64_t fixed, std::uint64_t payload, std::uint64_t boundary) {
  if (boundary == 0) return 1;
  const std::uint64_t first = boundary - kInlineHeader.value - fixed % boundary;
  if (payload <= first) return 1;
  return 1 + divide_up(payload - first, boundary - kInlineHeader.value);
}

}  // namespace

WqeSize wqe_size(NicFamily family, Verb verb, Transport transport, Bytes payload, bool inlined) {
  if (!facts(transport).verbs.has(verb)) {
    fail("{} is no verb of transport {}", to_string(verb), to_string(transport));
  }
  if (inlined && !facts(verb).may_inline) fail("{} takes no inline payload", to_string(verb));
  std::uint64_t used = fixed_bytes(wqe_layout(transport, verb));
  if (payload.value > 0) {
    if (inlined) {
      const std::uint64_t boundary = facts(family).inline_boundary.value;
      used += payload.value + kInlineHeader.value * inline_chunks(used, payload.value, boundary);
    } else {
      used += kDataSegment.value;
    }
  }
  return {Bytes(used), Bytes(round_up(used, kWqeUnit.value))};
}

SendQueueLayout send_queue_layout(NicFamily family, Transport transport, WqeSize wqe, Bytes max_inline, bool has_sge,
                                  int depth) {
  const auto slots = static_cast<std::uint64_t>(depth);
  if (!facts(family).fixed_slots) {
    const auto blocks = static_cast<std::uint64_t>(wqe.lines());
    return {kWqeBlock * blocks, kWqeBlock * std::bit_ceil(slots * blocks)};
  }
  const Verb largest = facts(transport).verbs.has(Verb::write) ? Verb::write : Verb::send;
  const WqeSize inlined = wqe_size(family, largest, transport, max_inline, true);
  const WqeSize gathered = wqe_size(family, largest, transport, Bytes(has_sge ? 1 : 0), false);
  const std::uint64_t stride = std::bit_ceil(std::max({kWqeBlock.value, inlined.padded.value, gathered.padded.value}));
  return {Bytes(stride), Bytes(stride * std::bit_ceil(slots))};
}

}  // namespace verbscope
