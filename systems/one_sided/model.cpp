#include "systems/one_sided/model.hpp"

#include <numeric>

namespace verbscope {

namespace {

constexpr std::uint64_t kPeriod = ReadCounts::kPeriod;  // bytes: the cost of a READ depends on its offset modulo this

using OffsetShares = std::map<std::uint64_t, double>;

// The offsets of places `stride` bytes apart, all with the same share.
OffsetShares offsets_of_places(std::uint64_t begin, std::uint64_t stride) {
  OffsetShares shares;
  const std::uint64_t offsets = kPeriod / std::gcd(stride, kPeriod);
  for (std::uint64_t i = 0; i < offsets; ++i) shares[(begin + i * stride) % kPeriod] = 1;
  return shares;
}

// Adds a part for each offset, in proportion to its share.
template <class Predict>
void add_places(std::vector<PredictedPart>& parts, const OffsetShares& shares, double per_op, Predict&& predict) {
  if (per_op <= 0) return;
  double sum = 0;
  for (const auto& [offset, share] : shares) sum += share;
  for (const auto& [offset, share] : shares) parts.push_back({predict(Bytes(offset)), per_op * share / sum});
}

VerbShape shape_of(const Operation& op, int ports, Verb verb, Transport transport, std::uint32_t bytes, Bytes offset) {
  VerbShape shape = verb_shape(op, ports);
  shape.verb = verb;
  shape.transport = transport;
  shape.payload = Bytes(bytes);
  shape.payload_offset = offset;
  shape.inlined = false;
  shape.inline_recv = false;
  shape.signal_every = 1;
  return shape;
}

}  // namespace

Prediction predict_one_sided(const ClusterWire& cluster, const Operation& op, int ports, const OneSidedLoad& load) {
  std::vector<PredictedPart> parts;
  for (const ReadsOfPlaces& reads : load.reads) {
    const OffsetShares offsets =
        reads.by_offset.empty() ? offsets_of_places(reads.begin, reads.stride) : reads.by_offset;
    add_places(parts, offsets, reads.per_op, [&](Bytes offset) {
      return predict_responder(cluster, shape_of(op, ports, Verb::read, Transport::rc, reads.bytes, offset));
    });
  }
  const PutPaths& paths = load.paths;
  const PutLayout& layout = paths.layout;
  const Verb verb = paths.by_memory ? Verb::write : Verb::send;
  // Messages by WRITE end where their slots end, those by SEND begin where the places of RECVs do.
  const std::uint64_t first = paths.by_memory ? paths.slots_at() + layout.stride() - layout.message_bytes() : 0;
  add_places(parts, offsets_of_places(first, layout.stride()), load.puts, [&](Bytes offset) {
    const VerbShape message = shape_of(op, ports, verb, Transport::uc, layout.message_bytes(), offset);
    return paths.by_memory ? predict_responder(cluster, message) : predict_receiver(cluster, message);
  });
  if (load.puts > 0) {
    VerbShape answer = shape_of(op, ports, verb, Transport::uc, kPutTagBytes, Bytes(0));
    answer.inlined = true;
    answer.signal_every = static_cast<int>(put_signal_every(op.tx_depth));
    parts.push_back({predict_requester(cluster, answer), load.puts});
  }
  return predict_together("store", parts);
}

}  // namespace verbscope
