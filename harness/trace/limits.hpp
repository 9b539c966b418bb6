// How long the resources of a cluster take for what a traced program did, by the parameters of the cluster's profile.
// The longest of these times is what the program would meet first, if nothing but its own requests held it up: it
// cannot be quicker. docs/trace.md has the rules.
#pragma once

#include <string_view>
#include <vector>

#include "drivers_patch/summary.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

enum class TraceLimit {
  cpu,                // of the busiest thread: posts, polls, registrations
  pcie_to_nic,        // bytes on the link
  pcie_to_host,       // likewise
  dma_reads,          // reads in flight: tags
  requester_unit,     // what processes requests that are sent: of one QP, or of all
  receiving_unit,     // what takes in acknowledgements, responses and messages: of one QP, or of all
  peer_unit,          // the unit of the peer that takes what one connection sends
  qp_contexts,        // reads of QP contexts that are not in the cache
  wire_out,           // bytes of one port
  wire_in,            // likewise
  atomic_slot,        // the lock of the peer's atomic unit that most atomics need
  doorbell_register,  // the lock of a register that QPs of several threads share
  reads_at_once,      // READs and atomics that a connection may have under way
};

// READs and atomics that a connection may have under way where the program was not seen to ask for fewer.
inline constexpr std::uint32_t kMostReads = 16;

// "the CPU of the busiest thread", as a person says it.
std::string_view words_for(TraceLimit limit);

struct Taken {
  TraceLimit limit;
  double seconds = 0;
};

// The longest first; those that take no time are left out. Empty: no requests, and no RECVs that were used.
std::vector<Taken> limits_of(const driver::Summary& program, const Profile& profile);

}  // namespace verbscope
