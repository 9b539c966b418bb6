// Decodes the WQE at a position of a send queue: the inverse of the mlx5 and mlx4 providers (rdma-core 44,
// providers/mlx5/qp.c, providers/mlx4/qp.c; structures in mlx5dv.h and mlx4dv.h).
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/enum_table.hpp"
#include "drivers_patch/queue_memory/send_queue.hpp"
#include "wire/transport.hpp"
#include "wire/wqe_segments.hpp"

namespace verbscope::driver {

// The control segment of both families has six bits for the size.
inline constexpr std::uint32_t kMostWqeUnits = 63;
inline constexpr std::size_t kMostWqeBytes = kMostWqeUnits * kWqeUnit.value;

// Numbers are in host byte order. Members that an opcode or transport does not have are 0.
struct Wqe {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint32_t bytes = 0;      // in units of 16, from the control segment
  std::uint32_t blocks = 0;     // of 64 bytes
  unsigned flags = 0;           // of ibv_send_flags: signaled, fence, solicited; inline if it has inline data
  std::uint32_t immediate = 0;  // or the key to invalidate
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
  std::uint32_t remote_qpn = 0;  // if a datagram
  std::uint32_t qkey = 0;
  std::uint32_t elements = 0;  // entries of `gather`
  std::uint32_t inline_bytes = 0;
  std::array<ibv_sge, kMostWqeUnits> gather;         // `elements` entries
  std::array<std::byte, kMostWqeBytes> inline_data;  // `inline_bytes` bytes, all chunks joined
};

enum class Refusal : std::uint8_t {
  none,
  not_written,
  too_short,
  too_long,
  unknown_opcode,
  not_of_transport,
  compact_address,
  past_end,
  crosses_line,
  stamped,
};

struct RefusalFacts {
  Refusal value;
  std::string_view name;  // in result records
  std::string_view text;
};

inline constexpr EnumTable<Refusal, RefusalFacts> kRefusals{{
    {Refusal::none, "none", "nothing is wrong"},
    {Refusal::not_written, "not_written", "the driver has not written it"},
    {Refusal::too_short, "too_short", "its size has no room for its segments"},
    {Refusal::too_long, "too_long", "its size is more than its place in the queue"},
    {Refusal::unknown_opcode, "unknown_opcode", "no request of verbs has its opcode"},
    {Refusal::not_of_transport, "not_of_transport", "its transport does not have its opcode"},
    {Refusal::compact_address, "compact_address", "its address vector is none of 48 bytes"},
    {Refusal::past_end, "past_end", "its inline data go on behind its end"},
    {Refusal::crosses_line, "crosses_line", "a chunk of its inline data crosses a line of 64 bytes"},
    {Refusal::stamped, "stamped", "a line of it is stamped, which the driver has not written"},
}};
static_assert(in_order(kRefusals));

// Fills `wqe`. For any memory contents it reads only inside the queue. If it returns a refusal, only the sizes in `wqe`
// are valid, 0 if they could not be read. mlx4: each WQE fills one slot; mlx5: a WQE may wrap around the queue's end.
Refusal decode(const SendQueue& queue, Transport transport, std::uint32_t position, Wqe& wqe);

}  // namespace verbscope::driver
