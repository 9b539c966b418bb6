#include "drivers_patch/shapes.hpp"

#include <span>

namespace verbscope::driver {
namespace {

constexpr std::size_t kProbes = 4;
constexpr std::uint64_t kLongest = 0xffffffff;  // largest length in a shape

std::uint64_t total_length(std::span<const ibv_sge> elements) {
  std::uint64_t length = 0;
  for (const ibv_sge& element : elements) length += element.length;
  return length;
}

}  // namespace

Request posted_request(const ibv_send_wr& wr) {
  if (wr.num_sge == 1) return request_of({shape_head(wr), shape_data(*wr.sg_list, ~std::uint32_t{0})});
  Request request = request_of({shape_head(wr), 0});
  const std::span gather(wr.sg_list, static_cast<std::uint32_t>(wr.num_sge));
  request.length = total_length(gather);
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) request.gather = gather;
  return request;
}

// A shape has four possible slots, so that lookups are short, and keeps the slot it took.
std::uint64_t* count_of(QpCounts& counts, const Shape& shape) {
  const std::uint64_t first = (shape.head + shape.data) * 0x9e3779b97f4a7c15 >> 60;
  for (std::size_t i = 0; i < kProbes; ++i) {
    ShapeSlot& slot = counts.shapes[(first + i) % QpCounts::kShapes];
    if (slot.head == shape.head && slot.data == shape.data) return &slot.count;
    // An unused slot has count 0. The shape of all zeros (an empty WRITE) also matches an unused slot.
    if (slot.head == 0 && slot.data == 0 && slot.count == 0) {
      put(slot.head, shape.head);
      put(slot.data, shape.data);
      return &slot.count;
    }
  }
  return nullptr;
}

void count_shape(QpCounts& counts, const Shape& shape, std::uint64_t weight) {
  if (std::uint64_t* const count = count_of(counts, shape)) return add(*count, weight);
  count_gather(counts, request_of(shape), weight);
}

void count_gather(QpCounts& counts, const Request& request, std::uint64_t weight) {
  SendTotals totals = counts.spilled;
  add_request(process.arena.header().wire, counts.qp->facts, request, weight, totals);
  put_all(counts.spilled, totals);
}

void count_several(QpCounts& counts, const ibv_send_wr& wr, bool alone, std::uint64_t weight) {
  Request request = posted_request(wr);
  request.alone = alone;
  if (request.gather.empty() && request.length <= kLongest) {
    return count_shape(counts, {shape_head(wr) | (alone ? kAlone : 0), request.length << 32}, weight);
  }
  count_gather(counts, request, weight);
}

void count_received(QpCounts& counts, std::uint64_t shape, std::uint64_t weight) {
  for (ReceiveSlot& slot : counts.received) {
    if (slot.count != 0 && slot.shape != shape) continue;
    put(slot.shape, shape);
    counts.last_received = shape;
    counts.last_received_count = &slot.count;
    return add(slot.count, weight);
  }
  ReceiveTotals totals = counts.received_spilled;
  add_received(process.arena.header().wire, counts.qp->facts, shape & 0xffffffff, (shape & kWithoutMemory) == 0, weight,
               totals);
  put_all(counts.received_spilled, totals);
}

std::uint64_t all_requests(const QpCounts& counts) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts.spilled.by_opcode) all += count;
  for (const ShapeSlot& slot : counts.shapes) all += slot.count;
  return all;
}

std::uint64_t signaled_requests(const QpCounts& counts) {
  std::uint64_t signaled = counts.spilled.signaled;
  for (const ShapeSlot& slot : counts.shapes) {
    const bool asks = (request_of({slot.head, slot.data}).flags & IBV_SEND_SIGNALED) != 0;
    if (asks || counts.qp->facts.signal_all) signaled += slot.count;
  }
  return signaled;
}

}  // namespace verbscope::driver
