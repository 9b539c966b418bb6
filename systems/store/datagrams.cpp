#include "systems/store/datagrams.hpp"

#include "systems/answers/message_recvs.hpp"

namespace verbscope {

namespace {

VerbShape datagram_shape(const Operation& op, int ports, std::uint64_t bytes) {
  VerbShape shape = verb_shape(op, ports);
  shape.verb = Verb::send;
  shape.transport = Transport::ud;
  shape.payload = Bytes(bytes);
  shape.inlined = bytes > 0 && bytes <= op.inline_limit;
  shape.immediate = true;
  return shape;
}

}  // namespace

Prediction predict_request_datagram(const ClusterWire& cluster, const Operation& op, int ports, std::uint64_t bytes) {
  VerbShape shape = datagram_shape(op, ports, bytes);
  shape.post_list = static_cast<int>(kMessageRecvList);
  return predict_receiver(cluster, shape);
}

Prediction predict_response_datagram(const ClusterWire& cluster, const Operation& op, int ports, std::uint64_t bytes,
                                     const ListShare& lists) {
  VerbShape shape = datagram_shape(op, ports, bytes);
  shape.post_list = lists.length;
  shape.post_step = lists.step;
  return predict_requester(cluster, shape);
}

}  // namespace verbscope
