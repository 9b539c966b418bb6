#include "nic_sim/nic/send_layout.hpp"

#include <algorithm>
#include <bit>

namespace verbscope::sim {

SendLayout& SendLayout::add_inline(std::uint64_t bytes) {
  const std::uint64_t boundary = facts_->inline_boundary.value;
  while (bytes > 0) {
    size_ += kInlineHeader.value;
    const std::uint64_t chunk = boundary == 0 ? bytes : std::min(bytes, boundary - size_ % boundary);
    size_ += chunk;
    bytes -= chunk;
  }
  return *this;
}

SendLayout begin_layout(NicFamily family, Verb verb, Transport transport) {
  const WqeLayout segments = wqe_layout(transport, verb);
  return SendLayout(family)
      .add(segments.control)
      .add(segments.address)
      .add(segments.remote_address)
      .add(segments.atomic);
}

namespace {

VerbRules make_verb_rules(NicFamily family, Verb verb, Transport transport) {
  if (!facts(verb).requests || !facts(transport).verbs.has(verb)) return {false, false, SendLayout(family)};
  return {true, facts(verb).may_inline, begin_layout(family, verb, transport)};
}

auto make_family_rules(NicFamily family) {
  return make_enum_table<Transport>([family](Transport transport) {
    return make_enum_table<Verb>([=](Verb verb) { return make_verb_rules(family, verb, transport); });
  });
}

}  // namespace

const TransportRules& transport_rules(NicFamily family, Transport transport) {
  static const auto families = make_enum_table<NicFamily>(make_family_rules);
  return row_of(row_of(families, family), transport);
}

SlotSize send_slot(NicFamily family, Transport transport, std::uint32_t max_inline, std::uint32_t max_sge) {
  // Where a QP may WRITE, its slots have room for a remote address segment.
  const Verb verb = facts(transport).verbs.has(Verb::write) ? Verb::write : Verb::send;
  const std::uint64_t with_inline = begin_layout(family, verb, transport).add_inline(max_inline).blocks_size();
  const std::uint64_t with_sges = begin_layout(family, verb, transport).add_sges(max_sge).blocks_size();
  const auto largest = static_cast<std::uint32_t>(std::max(with_inline, with_sges));
  return {facts(family).fixed_slots ? std::bit_ceil(largest) : 0, largest};
}

}  // namespace verbscope::sim
