// Memory regions that one-sided operations access: the local one, those of peers, and the order of a QP's accesses.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace verbscope {

// Registered memory of a peer; 0 bytes if it has none.
struct RemoteRegion {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t rkey = 0;
};

// Registered memory of this node, shared by its threads; empty if the benchmark asks for none.
struct LocalRegion {
  std::span<std::byte> bytes;
  std::uint32_t lkey = 0;
};

// The part of a region that belongs to one of a node's QPs. Both sides compute the same slice.
struct Slice {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// An equal share for QP `index` of `qps`, on a boundary of `alignment` bytes.
constexpr Slice slice_of(std::uint64_t region_bytes, std::uint32_t qps, std::uint32_t index,
                         std::uint64_t alignment = 64) {
  const std::uint64_t share = region_bytes / qps / alignment * alignment;
  return {index * share, share};
}

enum class Addresses { sequential, random };

// Chooses the remote address of each request: places in a region, `stride` bytes apart, in sequence or at random.
class RemoteWalk {
 public:
  // `seed` also selects the first place of a sequential walk. `extent`: bytes of a place, if that is not the stride:
  // places may then overlap. There must be at least one place and fewer than 2^32.
  RemoteWalk(const RemoteRegion& region, std::uint64_t stride, Addresses addresses, std::uint64_t seed)
      : RemoteWalk(region, stride, addresses, seed, stride) {}
  RemoteWalk(const RemoteRegion& region, std::uint64_t stride, Addresses addresses, std::uint64_t seed,
             std::uint64_t extent)
      : base_(region.address),
        rkey_(region.rkey),
        stride_(stride),
        places_((region.bytes - extent) / stride + 1),
        random_(addresses == Addresses::random),
        state_(random_ ? seed * kMultiplier + kIncrement : seed % places_) {}

  // Sets the addresses of `count` requests to the next places. Data path.
  void point(ibv_send_wr* requests, std::uint32_t count) {
    std::uint64_t state = state_;
    const std::uint64_t base = base_, stride = stride_,
                        places = places_;  // local copies: the stores below may alias the members
    const ibv_send_wr* const end = requests + count;
    if (random_) {
#pragma GCC unroll 4
      for (; requests != end; ++requests) {
        state = state * kMultiplier + kIncrement;
        requests->wr.rdma.remote_addr = base + ((state >> 32) * places >> 32) * stride;
      }
    } else {
      for (; requests != end; ++requests) {
        requests->wr.rdma.remote_addr = base + state * stride;
        if (++state == places) state = 0;
      }
    }
    state_ = state;
  }

  std::uint64_t places() const {
    return places_;
  }
  std::uint32_t rkey() const {
    return rkey_;
  }

 private:
  // The generator of Knuth's MMIX, with a period of 2^64; the high half of the state is used.
  static constexpr std::uint64_t kMultiplier = 6364136223846793005u;
  static constexpr std::uint64_t kIncrement = 1442695040888963407u;

  std::uint64_t base_;
  std::uint32_t rkey_;
  std::uint64_t stride_;
  std::uint64_t places_;
  bool random_;
  std::uint64_t state_;
};

}  // namespace verbscope
