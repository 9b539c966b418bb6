// Work queue elements: the segments of a WQE, for each verb and transport. The size of a whole WQE is computed
// independently in closed form (pcie_model) and segment by segment (nic_sim).
#pragma once

#include "wire/nic_family.hpp"
#include "wire/transport.hpp"
#include "wire/verb.hpp"
#include "wire/wqe_segments.hpp"

namespace verbscope {

// Sizes of the segments before the data, in this order; 0: no such segment. The data follow, inline or as one data
// segment per SGE; an empty payload has neither.
struct WqeLayout {
  Bytes control;
  Bytes address;         // target of a datagram
  Bytes remote_address;  // address in the responder's memory
  Bytes atomic;          // the operands
};

// Both families use the same layout. Precondition: the transport has the verb.
constexpr WqeLayout wqe_layout(Transport transport, Verb verb) {
  const VerbFacts& of_verb = facts(verb);
  const Bytes none(0);
  return {.control = of_verb.requests ? kControlSegment : none,
          .address = of_verb.requests ? facts(transport).address_segment : none,
          .remote_address = of_verb.one_sided ? kRemoteAddressSegment : none,
          .atomic = of_verb.atomic ? kAtomicSegment : none};
}

}  // namespace verbscope
