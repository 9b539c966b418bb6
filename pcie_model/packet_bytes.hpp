// Closed-form number of bytes for which an operation occupies the wire. Includes headers and CRCs, and for Ethernet
// also preambles and gaps. InfiniBand packets have no GRH.
#pragma once

#include "common/units.hpp"
#include "wire/link_type.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

// Bytes that the requester sends: the message of a SEND or WRITE in packets with at most `mtu` bytes of payload, or the
// request of a READ or atomic. `immediate` adds 4 bytes once.
Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu,
                    LinkType link = LinkType::infiniband);

// Bytes of the responder's response to a READ or atomic. 0 for other verbs: acknowledgements coalesce, and the model
// ignores them.
Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu, LinkType link = LinkType::infiniband);

}  // namespace verbscope
