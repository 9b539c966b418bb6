// The bytes for which an operation occupies the wire, in closed form: headers and CRCs included, of Ethernet preambles
// and gaps too; of InfiniBand without a GRH.
#pragma once

#include "common/units.hpp"
#include "wire/link_type.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

// The requester sends the message of a SEND or WRITE in packets of at most `mtu` bytes of payload, or the request of a
// READ or atomic. `immediate` adds 4 bytes once.
Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu,
                    LinkType link = LinkType::infiniband);

// The responder sends the response of a READ or atomic. 0 for other verbs: acknowledgements coalesce, and the model
// leaves them out.
Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu, LinkType link = LinkType::infiniband);

}  // namespace verbscope
