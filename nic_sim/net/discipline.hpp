// Queue disciplines of Ethernet ports: admission of packets to a buffer, pauses of senders, and ECN marking.
#pragma once

#include <cstdint>
#include <memory>

#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

// The limits of one buffer, in bytes.
struct BufferLimits {
  std::uint64_t size;
  double alpha;             // limit of a queue, relative to the free bytes
  std::uint64_t xoff, xon;  // per sender and priority: pause above, resume below
};

// One class per discipline in discipline.cpp, and a name in kFlowControls (profile.hpp).
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

// ECN marking. An output marks packets when they leave, by the length of its queue at that time, as switches with a
// shared buffer do: the mark does not wait in the queue (Zhu et al., "ECN or Delay", CoNEXT 2016, section 5.2). The
// probability is 0 below K_min, rises to P_max at K_max, and is 1 above (Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1).
class Marking {
 public:
  explicit Marking(const SwitchProfile& profile)
      : min_(profile.ecn_min.value), max_(profile.ecn_max.value), probability_(profile.ecn_probability) {}

  // True if a packet that leaves a queue of `queue` bytes is to be marked.
  bool marks(std::uint64_t queue, Random& random) const {
    if (max_ == 0 || queue < min_) return false;
    if (queue >= max_) return true;
    const double share = static_cast<double>(queue - min_) / static_cast<double>(max_ - min_);
    return random.uniform() < probability_ * share;
  }

 private:
  std::uint64_t min_;
  std::uint64_t max_;
  double probability_;
};

}  // namespace verbscope::sim
