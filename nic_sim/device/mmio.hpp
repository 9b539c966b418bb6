// MMIO: how the CPU tells the NIC of work. Each write costs `thread` its time and waits for write-combining buffers;
// without a thread (null) it costs nobody's.
#pragma once

#include <cstdint>

#include "common/units.hpp"

namespace verbscope::sim {

class Nic;
class SimThread;
struct SimQp;

// The CPU posts the batch that begins at WQE `first` to the NIC, at the thread's time: by a doorbell, or, by_blueflame,
// by writing that WQE of `size` bytes itself, line by line.
void write_batch(SimQp& qp, SimThread* thread, std::uint64_t first, std::uint64_t size);

// The doorbell that arms a completion queue. The thread is in step with the engine afterwards. Yields when the write
// has drained to the link.
Picos ring_arm_doorbell(Nic& nic, SimThread* thread);

}  // namespace verbscope::sim
