// How a send WQE is laid out, segment by segment, as the driver of each NIC family writes it; and with that its size.
#pragma once

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
  // Inline data: one chunk (mlx5), or chunks that end at 64-byte boundaries, each with a header (mlx4). None when
  // empty.
  SendLayout& add_inline(std::uint64_t bytes);
  SendLayout& add_sges(std::uint64_t sges) { return add(kDataSegment * sges); }

  // In 16-byte units, and in whole blocks.
  std::uint64_t size() const { return round_up(size_, kWqeUnit.value); }
  std::uint64_t blocks_size() const { return round_up(size_, kWqeBlock.value); }

 private:
  const FamilyFacts* facts_;
  std::uint64_t size_ = 0;
};

// The segments before the data.
SendLayout begin_layout(NicFamily family, Verb verb, Transport transport);

// The rules by which a QP takes a verb.
struct VerbRules {
  bool exists;  // the QP's transport has it, and it is posted to a send queue
  bool may_inline;
  SendLayout before_data;  // the segments before the data
};

// The rules of a transport, by verb.
using TransportRules = EnumTable<Verb, VerbRules>;
const TransportRules& transport_rules(NicFamily family, Transport transport);

// The size of a send queue's slots (mlx4: one size, a power of two, that fits the largest WQE that the QP may post), or
// 0 where WQEs are packed in blocks; and the largest WQE itself.
struct SlotSize {
  std::uint32_t slot;
  std::uint32_t largest;
};
SlotSize send_slot(NicFamily family, Transport transport, std::uint32_t max_inline, std::uint32_t max_sge);

}  // namespace verbscope::sim
