// MMIO: how the CPU tells the NIC of work. Each write costs `thread` its time and waits for write-combining buffers;
// without a thread (null) it costs nobody's.
#pragma once

#include <cstdint>

#include "common/units.hpp"

namespace verbscope::sim {

class Nic;
class SimThread;
struct SimQp;

// Batch `number` of the QP is announced, at the thread's time: by a doorbell, or by the CPU writing its WQE of `size`
// bytes itself, line by line.
void ring_doorbell(SimQp& qp, SimThread* thread, std::uint64_t number);
void write_by_blueflame(SimQp& qp, SimThread* thread, std::uint64_t number, std::uint64_t size);

// The doorbell that arms a completion queue. The thread is in step with the engine afterwards. Yields when the write
// has left for the link.
Picos ring_arm_doorbell(Nic& nic, SimThread* thread);

}  // namespace verbscope::sim
