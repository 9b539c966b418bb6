#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/explain.hpp"
#include "pcie_model/predict.hpp"
#include "wire/wqe.hpp"

namespace verbscope {
namespace {

constexpr int kBatch = 16;
constexpr int kSignalEvery = 64;
// Post lists that must fit into the outstanding operations, so that others are under way while the program waits for
// one.
constexpr int kMinListsOutstanding = 4;

Prediction predict_polled(const Prediction& before, const VerbShape& shape) {
  if (before.role == "receiver") return predict_receiver(before.wire, shape);
  if (before.role == "responder") return predict_responder(before.wire, shape);
  return predict_requester(before.wire, shape);
}

class Changes {
 public:
  Changes(const Prediction& before, int outstanding)
      : before_(before), shape_(before.shape), depth_(std::min(before.shape.send_queue_depth, outstanding)) {}

  std::vector<ShapeChange> all() {
    if (before_.role == "requester") {
      requester();
    } else if (before_.role == "receiver") {
      receiver();
    }
    return std::move(out_);
  }

 private:
  // Skips changes that the adapter, transport or verb does not allow: the model throws for them.
  void add(const std::string& text, Json options, const VerbShape& shape) {
    try {
      out_.push_back({text, std::move(options), predict_like(before_, shape)});
    } catch (const Error&) {
      return;
    }
  }

  void requester() {
    const bool carries = facts(shape_.verb).carries_payload;
    batch(depth_ / kMinListsOutstanding);
    if (carries && !shape_.inlined && shape_.payload.value > 0) inline_payload();
    if (carries && shape_.inlined && shape_.payload.value > 0) {
      VerbShape other = shape_;
      other.inlined = false;
      other.max_inline_cap = Bytes(0);
      add("the payload by address instead of inline", Json{{"inline_size", 0}}, other);
      shrink();
    }
    if (shape_.verb == Verb::send) header_only();
    // The queue needs room for a post list besides the operations that wait for a signal.
    const int room = shape_.send_queue_depth + 1 - std::max(shape_.post_list, 1);
    if (const int every = std::min({kSignalEvery, depth_ / 2, room}); shape_.signal_every < every) {
      VerbShape other = shape_;
      other.signal_every = every;
      add(fmt::format("a signal every {} operations instead of every {}", every, shape_.signal_every),
          Json{{"cq_mod", every}}, other);
    }
    if (carries && shape_.transport == Transport::rc) {
      VerbShape other = shape_;
      other.transport = Transport::uc;
      add("UC instead of RC", Json{{"connection", "UC"}}, other);
    }
    if (!carries) inline_receive();
  }

  void receiver() {
    batch(shape_.recv_queue_depth);
    header_only();
    inline_receive();
  }

  void batch(int depth) {
    const int list = std::min(kBatch, depth);
    if (shape_.post_list >= list) return;
    VerbShape other = shape_;
    other.post_list = list;
    add(fmt::format("post lists of {} instead of {}", list, shape_.post_list), Json{{"post_list", list}}, other);
  }

  void inline_payload() {
    VerbShape other = shape_;
    other.inlined = true;
    other.max_inline_cap = shape_.payload;
    add(fmt::format("the {} B of payload inline", shape_.payload.value), Json{{"inline_size", shape_.payload.value}},
        other);
  }

  // Removes the fewest payload bytes that make the WQE shorter by one cache line.
  void shrink() {
    VerbShape other = shape_;
    for (std::uint64_t less = 1; less <= kCacheLine.value && less < shape_.payload.value; ++less) {
      other.payload = Bytes(shape_.payload.value - less);
      const Prediction after = predict_like(before_, other);
      if (after.wqe_lines >= before_.wqe_lines) continue;
      out_.push_back({fmt::format("a WQE smaller by {} B: {} B of payload instead of {}", less, other.payload.value,
                                  shape_.payload.value),
                      Json{{"size", other.payload.value}}, after});
      return;
    }
  }

  // An immediate holds 4 bytes, so a payload of up to one cache line may fit in another form.
  void header_only() {
    if (shape_.header_only || shape_.payload > kCacheLine) return;
    VerbShape other = shape_;
    other.header_only = true;
    other.payload = Bytes(0);
    other.inlined = false;
    other.max_inline_cap = Bytes(0);
    add("header-only: 4 bytes in the immediate", Json{{"header_only", true}, {"size", 0}, {"inline_size", 0}}, other);
  }

  void inline_receive() {
    if (shape_.inline_recv || shape_.payload.value == 0) return;
    const ClusterWire& wire = before_.wire;
    const InlineReceiveRoom room = inline_receive_room(wire.family, shape_.transport, shape_.verb, wire.cqe_bytes);
    // libibverbs supports no other form of inline receive.
    if (room.place != InlineReceive::in_cqe || shape_.payload > room.max_payload) return;
    VerbShape other = shape_;
    other.inline_recv = true;
    add("inline receive", Json{{"inline_recv", shape_.payload.value}}, other);
  }

  const Prediction& before_;
  const VerbShape& shape_;
  int depth_;
  std::vector<ShapeChange> out_;
};

}  // namespace

bool has_one_role(const Prediction& prediction) {
  constexpr std::array<std::string_view, 3> kRoles{"requester", "receiver", "responder"};
  return std::ranges::count(kRoles, prediction.role) > 0;
}

Prediction predict_like(const Prediction& before, const VerbShape& shape) {
  const Prediction polled = predict_polled(before, shape);
  return shape.events > 0 ? with_completion_events(polled, shape.events) : polled;
}

std::vector<ShapeChange> shape_changes(const Prediction& before, int outstanding) {
  return Changes(before, outstanding).all();
}

}  // namespace verbscope
