// The work requests of one QP, prebuilt: a ring that the posting loop walks a list at a time.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/plan.hpp"
#include "microbench/bench/region.hpp"

namespace verbscope {

// A ring holds whole post lists and ends on a signaled request; on UD it is, where it stays short, a multiple of the
// number of partners too, so that each gets the same share. Validated READs have a ring of all that can be outstanding,
// so that each request has bytes of its own.
struct RingShape {
  std::uint32_t length = 1;
  std::uint32_t post_list = 1;
  std::uint32_t signal_every = 1;
};
inline constexpr std::uint32_t kLongestRing = 8192;  // work requests
// Work requests of a ring whose remote addresses move on with each lap, at least.
inline constexpr std::uint32_t kShortestWalk = 32;
RingShape ring_shape(const Operation& operation, std::uint32_t partners);

// The payload slots that the ring's requests point at, one after the other in turn.
struct PayloadArea {
  std::uint64_t address = 0;
  std::uint64_t stride = 0;
  std::uint32_t slots = 1;
  std::uint32_t lkey = 0;
};

class SendRing {
 public:
  // Request j goes to destination j % n on UD (none are given otherwise), carries slot j % slots, and is signaled when
  // j + 1 is a multiple of signal_every. wr_id is send_id(queue). Requests are chained in lists of post_list. A WRITE
  // or READ goes to the beginning of `remote`.
  SendRing(const Operation& operation, const RingShape& shape, const PayloadArea& area,
           const std::vector<UdAddress>& destinations, std::uint32_t queue, const RemoteRegion& remote = {});

  ibv_send_wr* requests() { return requests_.data(); }
  const std::vector<ibv_send_wr>& list() const { return requests_; }

 private:
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
};

// How many of the first `posted` requests of a ring went to partner `index` of `partners`.
std::uint64_t posted_to(std::uint64_t posted, std::uint32_t ring_length, std::uint32_t partners, std::uint32_t index);

}  // namespace verbscope
