// What an Ethernet port does with packets that come while its buffer fills. A discipline is a file, its word among
// kFlowControls (profile.hpp) and its row in disciplines.cpp.
#pragma once

#include <cstdint>
#include <memory>

#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

// The limits of one buffer, in bytes.
struct BufferLimits {
  std::uint64_t size;
  double alpha;             // a queue may have so many times what is free
  std::uint64_t xoff, xon;  // of a sender and a priority: pause above, go on below
};

class Discipline {
 public:
  virtual ~Discipline() = default;
  // Whether a packet of `bytes` may join a queue of `queue` bytes; `used`: of the buffer, by all queues. Else it is
  // dropped.
  virtual bool admits(std::uint64_t used, std::uint64_t queue, std::uint64_t bytes) const = 0;
  // Whether a sender of which the buffer has `held` bytes must pause; `paused`: it was told to.
  virtual bool pauses(std::uint64_t held, bool paused) const = 0;
};

// Not for credits, which are InfiniBand's.
std::unique_ptr<Discipline> make_discipline(FlowControl kind, const BufferLimits& limits);

// Each in its file.
std::unique_ptr<Discipline> make_tail_drop(const BufferLimits& limits);
std::unique_ptr<Discipline> make_pfc(const BufferLimits& limits);

}  // namespace verbscope::sim
