// The bytes that an operation puts on an InfiniBand wire, headers and CRCs included but without a GRH, in closed form.
#pragma once

#include "common/units.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

// The requester sends the message of a SEND or WRITE in packets of at most `mtu` bytes of payload, or the request of a
// READ or atomic. `immediate` adds 4 bytes once.
Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu);

// The responder sends the response of a READ or atomic. 0 for other verbs: acknowledgements coalesce, and the model
// leaves them out.
Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu);

}  // namespace verbscope
