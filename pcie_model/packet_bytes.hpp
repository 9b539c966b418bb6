// Bytes that an operation puts on an InfiniBand wire, headers and CRCs included, in closed form. No GRH.
#pragma once

#include "common/units.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

// What the requester sends: the message of a SEND or WRITE in packets of at most `mtu` bytes of payload, or the request
// of a READ or atomic. `immediate` adds 4 bytes once.
Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu);

// What comes back: READ and atomic responses. 0 for other verbs: acknowledgements coalesce, which the model leaves out.
Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu);

}  // namespace verbscope
