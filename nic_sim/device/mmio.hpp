// MMIO writes, which notify the NIC of work. Each takes CPU time of `thread` and waits for free write-combining
// buffers. `thread` may be null: no CPU time is charged.
#pragma once

#include <cstdint>

#include "common/units.hpp"

namespace verbscope::sim {

class Nic;
class SimThread;
struct SimQp;

// Posts the batch that begins at WQE `first` to the NIC, at the thread's time: by a doorbell or, if the WQE is marked
// by_blueflame, by writing its `size` bytes line by line.
void write_batch(SimQp& qp, SimThread* thread, std::uint64_t first, std::uint64_t size);

// Writes the doorbell that arms a completion queue, after synchronizing the thread with the engine. Returns the time at
// which the write has drained to the link.
Picos ring_arm_doorbell(Nic& nic, SimThread* thread);

}  // namespace verbscope::sim
