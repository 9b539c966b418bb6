// When a driver posts by BlueFlame. Used by the model and by the simulated device.
#pragma once

#include <cstdint>

#include "wire/wqe.hpp"

namespace verbscope {

// A post of `list` WQEs. `size`: bytes of the last WQE, in whole units of kWqeUnit.
struct Post {
  Verb verb;
  Bytes payload;
  bool inlined;
  Bytes size;
  std::uint64_t list;
};

// rdma-core 44, mlx5_post_send and mlx4_post_send: BlueFlame for a single WQE that is longer than one unit and at most
// `largest` bytes; otherwise a doorbell. mlx4 also requires inline data, and treats a READ and a WRITE without data as
// inline.
constexpr bool goes_by_blueflame(NicFamily family, Bytes largest, const Post& post) {
  if (post.list != 1 || post.size <= kWqeUnit || post.size > largest) return false;
  const bool empty = post.payload.value == 0;
  const bool like_inline = post.verb == Verb::read || (post.verb == Verb::write && empty);
  return !facts(family).blueflame_needs_inline || like_inline || (post.inlined && !empty);
}

}  // namespace verbscope
