#include "nic_sim/nic/payload_writer.hpp"

#include "nic_sim/host/thread.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

void PayloadWriter::write(std::uint64_t address, Packet& packet) {
  packet.remote_address = address;
  packet.kept = true;
  ++under_way_;
  const Picos visible = bus_.dma_write(address, packet.payload, Ordered::yes);
  engine_.schedule(visible, &written, this, as_argument(packet));
}

void PayloadWriter::written(void* object, std::uint64_t argument) {
  PayloadWriter& self = *static_cast<PayloadWriter*>(object);
  Packet& packet = as_packet(argument);
  --self.under_way_;
  // The region may have been deregistered meanwhile.
  if (self.memory_.find(packet.rkey, packet.remote_address, packet.payload) != nullptr) {
    self.memory_.write(packet.remote_address, packet.data, packet.payload);
    self.watch_.written(packet.remote_address, packet.payload, [](SimThread& thread) { thread.memory_written(); });
  }
  self.packets_.give_back(packet);
}

}  // namespace verbscope::sim
