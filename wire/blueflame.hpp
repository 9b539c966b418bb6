// The rule by which a driver posts by BlueFlame, which the model and the simulated device both read.
#pragma once

#include <cstdint>

#include "wire/wqe.hpp"

namespace verbscope {

// A post has `list` WQEs, the last of which has `size` bytes in whole units of kWqeUnit.
struct Post {
  Verb verb;
  Bytes payload;
  bool inlined;
  Bytes size;
  std::uint64_t list;
};

// rdma-core 44, mlx5_post_send and mlx4_post_send: BlueFlame for a lone WQE of more than one unit that is no longer
// than `largest`, on mlx4 only with inline data, for which it takes a READ and a WRITE without data too; otherwise a
// doorbell.
constexpr bool goes_by_blueflame(NicFamily family, Bytes largest, const Post& post) {
  if (post.list != 1 || post.size <= kWqeUnit || post.size > largest) return false;
  const bool empty = post.payload.value == 0;
  const bool like_inline = post.verb == Verb::read || (post.verb == Verb::write && empty);
  return !facts(family).blueflame_needs_inline || like_inline || (post.inlined && !empty);
}

}  // namespace verbscope
