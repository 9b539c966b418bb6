// The layout of a send WQE, segment by segment, as the driver of each NIC family writes it, and its size.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "wire/wqe.hpp"

namespace verbscope::sim {

class SendLayout {
 public:
  explicit SendLayout(NicFamily family) : facts_(&facts(family)) {}

  SendLayout& add(Bytes segment) {
    size_ += segment.value;
    return *this;
  }
  // Inline data: one chunk (mlx5), or chunks that end at 64-byte boundaries, each with a header (mlx4). None if `bytes`
  // is 0.
  SendLayout& add_inline(std::uint64_t bytes) {
    const std::uint64_t boundary = facts_->inline_boundary.value;
    while (bytes > 0) {
      size_ += kInlineHeader.value;
      const std::uint64_t chunk = boundary == 0 ? bytes : std::min(bytes, boundary - size_ % boundary);
      size_ += chunk;
      bytes -= chunk;
    }
    return *this;
  }
  SendLayout& add_sges(std::uint64_t sges) { return add(kDataSegment * sges); }

  // Rounded up to 16-byte units, and to whole blocks.
  std::uint64_t size() const { return round_up(size_, kWqeUnit.value); }
  std::uint64_t blocks_size() const { return round_up(size_, kWqeBlock.value); }

 private:
  const FamilyFacts* facts_;
  std::uint64_t size_ = 0;
};

// The segments before the data. On XRC, mlx5 has the number of the shared queue in a segment of its own, and mlx4 in
// the control segment (rdma-core 44, providers/mlx5/wqe.h mlx5_wqe_xrc_seg, providers/mlx4/qp.c
// MLX4_REMOTE_SRQN_FLAGS).
inline SendLayout begin_layout(NicFamily family, Verb verb, Transport transport) {
  constexpr Bytes kXrcSegment{16};
  const bool names_queue = facts(transport).names_queue && family == NicFamily::mlx5;
  const WqeLayout segments = wqe_layout(transport, verb);
  return SendLayout(family)
      .add(segments.control)
      .add(names_queue ? kXrcSegment : Bytes(0))
      .add(segments.address)
      .add(segments.remote_address)
      .add(segments.atomic);
}

// The conditions on which a QP accepts a verb.
struct VerbRules {
  bool exists;  // the transport has the verb, and it is posted to a send queue
  bool may_inline;
  SendLayout before_data;  // the segments before the data
};

using TransportRules = EnumTable<Verb, VerbRules>;

inline VerbRules make_verb_rules(NicFamily family, Verb verb, Transport transport) {
  if (!facts(verb).requests || !facts(transport).verbs.has(verb)) return {false, false, SendLayout(family)};
  return {true, facts(verb).may_inline, begin_layout(family, verb, transport)};
}

inline const TransportRules& transport_rules(NicFamily family, Transport transport) {
  static const auto families = make_enum_table<NicFamily>([](NicFamily each) {
    return make_enum_table<Transport>([each](Transport by) {
      return make_enum_table<Verb>([=](Verb verb) { return make_verb_rules(each, verb, by); });
    });
  });
  return row_of(row_of(families, family), transport);
}

// Of a QP that only receives.
inline const TransportRules& no_send_rules() {
  static const auto none = make_enum_table<Verb>(
      [](Verb) { return VerbRules{.exists = false, .may_inline = false, .before_data = SendLayout(NicFamily::mlx5)}; });
  return none;
}

// The size of a WQE that binds a window or invalidates a key. mlx5: control segment, UMR control (48 bytes), memory key
// context (64) and, to bind, one entry of the translation (64); mlx4: control segment and 32 bytes (rdma-core 44,
// providers/mlx5/qp.c set_bind_wr, providers/mlx4/qp.c set_bind_seg and set_local_inv_seg).
inline SendLayout key_work_layout(NicFamily family, bool binds) {
  SendLayout layout(family);
  layout.add(wqe_layout(Transport::rc, Verb::send).control);
  return family == NicFamily::mlx5 ? layout.add(Bytes(binds ? 48 + 64 + 64 : 48 + 64)) : layout.add(Bytes(32));
}

struct SlotSize {
  std::uint32_t slot;     // size of a send queue's slots (mlx4: a power of two that holds the largest WQE); 0: no slots
  std::uint32_t largest;  // size of the largest WQE that the QP may post
};

inline SlotSize send_slot(NicFamily family, Transport transport, std::uint32_t max_inline, std::uint32_t max_sge) {
  // If the transport has WRITE, each slot has room for a remote address segment.
  const Verb verb = facts(transport).verbs.has(Verb::write) ? Verb::write : Verb::send;
  const std::uint64_t with_inline = begin_layout(family, verb, transport).add_inline(max_inline).blocks_size();
  const std::uint64_t with_sges = begin_layout(family, verb, transport).add_sges(max_sge).blocks_size();
  const auto largest = static_cast<std::uint32_t>(std::max(with_inline, with_sges));
  return {facts(family).fixed_slots ? std::bit_ceil(largest) : 0, largest};
}

}  // namespace verbscope::sim
