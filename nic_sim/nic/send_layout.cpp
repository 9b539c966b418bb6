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
  SendLayout layout(family);
  const WqeLayout* segments = find_wqe_layout(family, verb, transport);
  if (segments->control) layout.add(kControlSegment);
  if (segments->datagram) layout.add(kDatagramSegment);
  if (segments->remote_address) layout.add(kRemoteAddressSegment);
  if (segments->atomic) layout.add(kAtomicSegment);
  return layout;
}

namespace {

VerbRules make_verb_rules(NicFamily family, Verb verb, Transport transport) {
  const WqeLayout* layout = find_wqe_layout(family, verb, transport);
  if (layout == nullptr) return {false, false, SendLayout(family)};
  return {true, layout->may_inline, begin_layout(family, verb, transport)};
}

TransportRules make_transport_rules(NicFamily family, Transport transport) {
  const auto rules = [=](Verb verb) { return make_verb_rules(family, verb, transport); };
  return {rules(Verb::send), rules(Verb::write), rules(Verb::read), rules(Verb::compare_swap), rules(Verb::fetch_add)};
}

std::array<TransportRules, 3> make_family_rules(NicFamily family) {
  const auto rules = [=](Transport transport) { return make_transport_rules(family, transport); };
  return {rules(Transport::rc), rules(Transport::uc), rules(Transport::ud)};
}

}  // namespace

const TransportRules& transport_rules(NicFamily family, Transport transport) {
  static const std::array families{make_family_rules(NicFamily::mlx4), make_family_rules(NicFamily::mlx5)};
  return families[static_cast<std::size_t>(family)][static_cast<std::size_t>(transport)];
}

SlotSize send_slot(NicFamily family, Transport transport, std::uint32_t max_inline, std::uint32_t max_sge) {
  // A connected QP may also WRITE: its slots have room for a remote address segment.
  const Verb verb = transport == Transport::ud ? Verb::send : Verb::write;
  const std::uint64_t with_inline = begin_layout(family, verb, transport).add_inline(max_inline).blocks_size();
  const std::uint64_t with_sges = begin_layout(family, verb, transport).add_sges(max_sge).blocks_size();
  const auto largest = static_cast<std::uint32_t>(std::max(with_inline, with_sges));
  return {family_facts(family).fixed_slots ? std::bit_ceil(largest) : 0, largest};
}

}  // namespace verbscope::sim
