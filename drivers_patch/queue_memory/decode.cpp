#include "drivers_patch/queue_memory/decode.hpp"

#include <endian.h>
#include <infiniband/mlx4dv.h>
#include <infiniband/mlx5dv.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <span>

#include "wire/wqe.hpp"

namespace verbscope::driver {
namespace {

// Opcodes are equal in both families.
struct OpcodeRow {
  std::uint32_t number;
  ibv_wr_opcode opcode;
  Verb verb;
};
constexpr OpcodeRow kOpcodeRows[] = {
    {MLX5_OPCODE_SEND_INVAL, IBV_WR_SEND_WITH_INV, Verb::send},
    {MLX5_OPCODE_RDMA_WRITE, IBV_WR_RDMA_WRITE, Verb::write},
    {MLX5_OPCODE_RDMA_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, Verb::write},
    {MLX5_OPCODE_SEND, IBV_WR_SEND, Verb::send},
    {MLX5_OPCODE_SEND_IMM, IBV_WR_SEND_WITH_IMM, Verb::send},
    {MLX5_OPCODE_RDMA_READ, IBV_WR_RDMA_READ, Verb::read},
    {MLX5_OPCODE_ATOMIC_CS, IBV_WR_ATOMIC_CMP_AND_SWP, Verb::compare_swap},
    {MLX5_OPCODE_ATOMIC_FA, IBV_WR_ATOMIC_FETCH_AND_ADD, Verb::fetch_add},
};
static_assert(int{MLX5_OPCODE_SEND_INVAL} == int{MLX4_OPCODE_SEND_INVAL} &&
              int{MLX5_OPCODE_RDMA_WRITE} == int{MLX4_OPCODE_RDMA_WRITE} &&
              int{MLX5_OPCODE_RDMA_WRITE_IMM} == int{MLX4_OPCODE_RDMA_WRITE_IMM} &&
              int{MLX5_OPCODE_SEND} == int{MLX4_OPCODE_SEND} &&
              int{MLX5_OPCODE_SEND_IMM} == int{MLX4_OPCODE_SEND_IMM} &&
              int{MLX5_OPCODE_RDMA_READ} == int{MLX4_OPCODE_RDMA_READ} &&
              int{MLX5_OPCODE_ATOMIC_CS} == int{MLX4_OPCODE_ATOMIC_CS} &&
              int{MLX5_OPCODE_ATOMIC_FA} == int{MLX4_OPCODE_ATOMIC_FA});
static_assert(std::uint32_t{MLX5_INLINE_SEG} == std::uint32_t{MLX4_INLINE_SEG});

// The contents of a control segment, for both families.
struct Control {
  bool written = false;
  std::uint32_t opcode = 0;
  std::uint32_t units = 0;
  unsigned flags = 0;
  std::uint32_t immediate = 0;
};

unsigned flags_of(bool signaled, bool fence, bool solicited) {
  return (signaled ? unsigned{IBV_SEND_SIGNALED} : 0u) | (fence ? unsigned{IBV_SEND_FENCE} : 0u) |
         (solicited ? unsigned{IBV_SEND_SOLICITED} : 0u);
}

// The index in the segment is the position of its WQE. A place written in an earlier round has another index; one that
// was never written has no QP number.
Control control_of(const mlx5_wqe_ctrl_seg& segment, std::uint32_t position) {
  constexpr unsigned kFenceMode = 7 << 5, kCompletionMode = 3 << 2;
  const std::uint32_t first = be32toh(segment.opmod_idx_opcode);
  const unsigned modes = segment.fm_ce_se;
  return {.written = (first >> 8 & 0xffff) == (position & 0xffff) && segment.qpn_ds != 0,
          .opcode = first & 0xff,
          .units = be32toh(segment.qpn_ds) & kMaxWqeUnits,
          .flags = flags_of((modes & kCompletionMode) == MLX5_WQE_CTRL_CQ_UPDATE,
                            (modes & kFenceMode) == MLX5_WQE_CTRL_FENCE, (modes & MLX5_WQE_CTRL_SOLICITED) != 0),
          .immediate = be32toh(segment.imm)};
}

Control control_of(const mlx4_wqe_ctrl_seg& segment, bool owner) {
  const std::uint32_t first = be32toh(segment.owner_opcode), modes = be32toh(segment.srcrb_flags);
  return {.written = (first >> 31 != 0) == owner,
          .opcode = first & 0xff,  // BlueFlame WQEs have their index above
          .units = segment.fence_size & kMaxWqeUnits,
          .flags = flags_of((modes & MLX4_WQE_CTRL_CQ_UPDATE) == MLX4_WQE_CTRL_CQ_UPDATE,
                            (segment.fence_size & MLX4_WQE_CTRL_FENCE) != 0, (modes & MLX4_WQE_CTRL_SOLICIT) != 0),
          .immediate = be32toh(segment.imm)};
}

Control read_control(const SendQueue& queue, std::uint32_t position) {
  std::array<std::byte, kControlSegment.value> copy;
  copy_from(queue, position, 0, copy);
  if (queue.family == NicFamily::mlx5) return control_of(std::bit_cast<mlx5_wqe_ctrl_seg>(copy), position);
  return control_of(std::bit_cast<mlx4_wqe_ctrl_seg>(copy), owner_at(queue, position));
}

// The segments after the control segment, read in order from a private copy.
class Segments {
 public:
  Segments(const SendQueue& queue, std::uint32_t position, std::size_t bytes) : size_(bytes) {
    copy_from(queue, position, 0, std::span(copy_).first(bytes));
  }

  std::size_t at() const { return at_; }
  bool end() const { return at_ >= size_; }
  std::size_t left() const { return size_ - at_; }
  // The caller has checked that enough bytes are left.
  template <class Segment>
  Segment take() {
    const Segment segment = peek<Segment>();
    at_ += sizeof segment;
    return segment;
  }
  template <class Segment>
  Segment peek() const {
    Segment segment;
    std::memcpy(&segment, &copy_[at_], sizeof segment);
    return segment;
  }
  void take_bytes(std::byte* to, std::size_t count) {
    std::memcpy(to, &copy_[at_], count);
    at_ += count;
  }
  void skip_to_unit() { at_ = round_up(at_, kWqeUnit.value); }

 private:
  std::array<std::byte, kMaxWqeBytes> copy_;
  std::size_t size_;
  std::size_t at_ = kControlSegment.value;
};

Refusal read_address(NicFamily family, Segments& segments, Wqe& wqe) {
  constexpr std::uint32_t kNumber = 0xffffff;
  if (family == NicFamily::mlx4) {
    const auto segment = segments.take<mlx4_wqe_datagram_seg>();
    wqe.remote_qpn = be32toh(segment.dqpn) & kNumber;
    wqe.qkey = be32toh(segment.qkey);
    return Refusal::none;
  }
  const auto segment = segments.take<mlx5_wqe_datagram_seg>();
  const std::uint32_t number = be32toh(segment.av.dqp_dct);
  wqe.remote_qpn = number & kNumber;
  wqe.qkey = be32toh(segment.av.key.qkey.qkey);
  return (number & MLX5_EXTENDED_UD_AV) != 0 ? Refusal::none : Refusal::compact_address;
}
static_assert(sizeof(mlx4_wqe_datagram_seg) == kDatagramSegment.value &&
              sizeof(mlx5_wqe_datagram_seg) == kDatagramSegment.value);

void read_remote(Segments& segments, bool atomic, Wqe& wqe) {
  const auto remote = segments.take<mlx5_wqe_raddr_seg>();  // the same in mlx4
  wqe.remote_address = be64toh(remote.raddr);
  wqe.rkey = be32toh(remote.rkey);
  if (!atomic) return;
  const auto operands = segments.take<mlx5_wqe_atomic_seg>();
  wqe.swap_or_add = be64toh(operands.swap_add);
  wqe.compare = be64toh(operands.compare);
}

void read_element(Segments& segments, std::uint32_t length, Wqe& wqe) {
  const auto segment = segments.take<mlx5_wqe_data_seg>();  // the same in mlx4
  wqe.gather[wqe.elements++] = {.addr = be64toh(segment.addr), .length = length, .lkey = be32toh(segment.lkey)};
}

// Reads a chunk of inline data. mlx4 starts a new chunk at each 64-byte line.
Refusal read_chunk(NicFamily family, Segments& segments, std::uint32_t length, Wqe& wqe) {
  const std::size_t begin = segments.at();
  segments.take<std::uint32_t>();
  if (length > segments.left()) return Refusal::past_end;
  const std::uint64_t line = facts(family).inline_boundary.value;
  if (line != 0 && begin % line + kInlineHeader.value + length > line) return Refusal::crosses_line;
  segments.take_bytes(&wqe.inline_data[wqe.inline_bytes], length);
  wqe.inline_bytes += length;
  segments.skip_to_unit();
  return Refusal::none;
}

// Reads data segments and inline data to the end of the WQE.
Refusal read_data(NicFamily family, Segments& segments, Wqe& wqe) {
  constexpr std::uint32_t kStamp = 0xffffffff;
  while (!segments.end()) {
    const std::uint32_t count = be32toh(segments.peek<std::uint32_t>());
    const std::uint32_t length = count & ~std::uint32_t{MLX5_INLINE_SEG};
    if (family == NicFamily::mlx4 && count == kStamp && segments.at() % kWqeBlock.value == 0) return Refusal::stamped;
    // mlx4 writes an empty element as empty inline data.
    if (count == length || (family == NicFamily::mlx4 && length == 0)) {
      read_element(segments, length, wqe);
      continue;
    }
    const Refusal refusal = read_chunk(family, segments, length, wqe);
    if (refusal != Refusal::none) return refusal;
  }
  if (wqe.inline_bytes > 0) wqe.flags |= IBV_SEND_INLINE;
  return Refusal::none;
}

Refusal read_segments(const SendQueue& queue, Transport transport, std::uint32_t position, Verb verb, Wqe& wqe) {
  const WqeLayout layout = wqe_layout(transport, verb);
  if (layout.control + layout.address + layout.remote_address + layout.atomic > Bytes(wqe.bytes)) {
    return Refusal::too_short;
  }
  Segments segments(queue, position, wqe.bytes);
  if (layout.address.value > 0) {
    const Refusal refusal = read_address(queue.family, segments, wqe);
    if (refusal != Refusal::none) return refusal;
  }
  if (layout.remote_address.value > 0) read_remote(segments, layout.atomic.value > 0, wqe);
  return read_data(queue.family, segments, wqe);
}

}  // namespace

Refusal decode(const SendQueue& queue, Transport transport, std::uint32_t position, Wqe& wqe) {
  wqe.bytes = wqe.blocks = wqe.elements = wqe.inline_bytes = 0;
  wqe.remote_address = wqe.swap_or_add = wqe.compare = 0;
  wqe.rkey = wqe.remote_qpn = wqe.qkey = 0;
  const Control control = read_control(queue, position);
  if (!control.written) return Refusal::not_written;
  if (control.units == 0) return Refusal::too_short;
  const std::uint64_t bytes = control.units * kWqeUnit.value;
  if (bytes > (facts(queue.family).fixed_slots ? queue.slot_bytes : queue.bytes())) return Refusal::too_long;
  wqe.bytes = static_cast<std::uint32_t>(bytes);
  wqe.blocks = static_cast<std::uint32_t>(divide_up(bytes, kWqeBlock.value));
  const auto* const row = std::ranges::find(kOpcodeRows, control.opcode, &OpcodeRow::number);
  if (row == std::end(kOpcodeRows)) return Refusal::unknown_opcode;
  if (!facts(transport).verbs.has(row->verb)) return Refusal::not_of_transport;
  wqe.opcode = row->opcode;
  wqe.flags = control.flags;
  wqe.immediate = control.immediate;
  return read_segments(queue, transport, position, row->verb, wqe);
}

}  // namespace verbscope::driver
