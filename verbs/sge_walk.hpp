// Functions on scatter/gather lists.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace verbscope {

// The total length of the elements.
inline std::uint64_t sge_bytes(std::span<const ibv_sge> sges) {
  std::uint64_t bytes = 0;
  for (const ibv_sge& sge : sges) bytes += sge.length;
  return bytes;
}

// Calls `visit(address, bytes, lkey)` for each piece of the range [begin, begin + bytes) of the list, in order, until
// it returns false. Empty elements have no piece. Returns true if the list covers the range and all pieces were
// visited.
template <class Visit>
bool walk_sges(std::span<const ibv_sge> sges, std::uint64_t begin, std::uint64_t bytes, Visit&& visit) {
  for (const ibv_sge& sge : sges) {
    if (bytes == 0) return true;
    if (begin >= sge.length) {
      begin -= sge.length;
      continue;
    }
    const std::uint64_t piece = std::min<std::uint64_t>(bytes, sge.length - begin);
    if (!visit(sge.addr + begin, piece, sge.lkey)) return false;
    bytes -= piece;
    begin = 0;
  }
  return bytes == 0;
}

}  // namespace verbscope
