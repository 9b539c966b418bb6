// Work queue elements: which segments the WQE of a verb has on a transport. Facts only: the size of a whole WQE is
// computed once in closed form (pcie_model) and once segment by segment (nic_sim).
#pragma once

#include "wire/nic_family.hpp"
#include "wire/transport.hpp"
#include "wire/verb.hpp"
#include "wire/wqe_segments.hpp"

namespace verbscope {

// The segments before the data, in this order, as sizes; 0: the WQE does not have the segment. The data follow inline
// or as one data segment per SGE; an empty payload has neither.
struct WqeLayout {
  Bytes control;
  Bytes address;         // whom a datagram goes to
  Bytes remote_address;  // the place in the responder's memory
  Bytes atomic;          // the operands
};

// Both families lay a WQE out alike. The transport must have the verb.
constexpr WqeLayout wqe_layout(Transport transport, Verb verb) {
  const VerbFacts& of_verb = facts(verb);
  const Bytes none(0);
  return {.control = of_verb.requests ? kControlSegment : none,
          .address = of_verb.requests ? facts(transport).address_segment : none,
          .remote_address = of_verb.one_sided ? kRemoteAddressSegment : none,
          .atomic = of_verb.atomic ? kAtomicSegment : none};
}

}  // namespace verbscope
