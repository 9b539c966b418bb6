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
#include "wire/wqe.hpp"

namespace verbscope::driver {

// The control segment of both families has six bits for the size.
inline constexpr std::uint32_t kMaxWqeUnits = 63;
inline constexpr std::size_t kMaxWqeBytes = kMaxWqeUnits * kWqeUnit.value;

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
  std::array<ibv_sge, kMaxWqeUnits> gather;         // `elements` entries
  std::array<std::byte, kMaxWqeBytes> inline_data;  // `inline_bytes` bytes, all chunks joined
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
    {Refusal::too_short, "too_short", "its size is too small for its segments"},
    {Refusal::too_long, "too_long", "its size exceeds its slot in the queue"},
    {Refusal::unknown_opcode, "unknown_opcode", "its opcode belongs to no verbs request"},
    {Refusal::not_of_transport, "not_of_transport", "its transport does not have its opcode"},
    {Refusal::compact_address, "compact_address", "its address vector is not 48 bytes long"},
    {Refusal::past_end, "past_end", "its inline data extend beyond its end"},
    {Refusal::crosses_line, "crosses_line", "a chunk of its inline data crosses a 64-byte line"},
    {Refusal::stamped, "stamped", "one of its 64-byte lines is stamped as not written"},
}};
static_assert(in_order(kRefusals));

// Fills `wqe`. For any memory contents it reads only inside the queue. If it returns a refusal, only the sizes in `wqe`
// are valid, 0 if they could not be read. mlx4: each WQE fills one slot; mlx5: a WQE may wrap around the queue's end.
Refusal decode(const SendQueue& queue, Transport transport, std::uint32_t position, Wqe& wqe);

}  // namespace verbscope::driver
