// Queue disciplines of Ethernet ports: admission of packets to a buffer, and pauses of senders. A discipline is a file,
// a word in kFlowControls (profile.hpp) and a row in disciplines.cpp.
#pragma once

#include <cstdint>
#include <memory>

#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

// The limits of one buffer, in bytes.
struct BufferLimits {
  std::uint64_t size;
  double alpha;             // limit of a queue, relative to the free bytes
  std::uint64_t xoff, xon;  // per sender and priority: pause above, resume below
};

class Discipline {
 public:
  virtual ~Discipline() = default;
  // True if a packet of `bytes` may join a queue of `queue` bytes, with `used` bytes of the buffer in use. Else it is
  // dropped.
  virtual bool admits(std::uint64_t used, std::uint64_t queue, std::uint64_t bytes) const = 0;
  // True if a sender with `held` bytes in the buffer must pause; `paused`: it already must.
  virtual bool pauses(std::uint64_t held, bool paused) const = 0;
};

// Precondition: the flow control is not credits, which only InfiniBand has.
std::unique_ptr<Discipline> make_discipline(FlowControl kind, const BufferLimits& limits);

// Each is defined in a file of its own.
std::unique_ptr<Discipline> make_tail_drop(const BufferLimits& limits);
std::unique_ptr<Discipline> make_pfc(const BufferLimits& limits);

}  // namespace verbscope::sim
