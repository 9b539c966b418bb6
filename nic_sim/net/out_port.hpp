// The sending side of an Ethernet port of a node or a switch: a queue per priority, and the line. The highest priority
// that is not paused goes first.
#pragma once

#include <array>
#include <cstdint>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/serial_resource.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

inline constexpr std::size_t kPriorities = 8;  // IEEE 802.1Q

class OutPort {
 public:
  // `packets`: memory of the packets. `rate`: of the line.
  OutPort(Engine& engine, const PacketMemory& packets, BytesPerSecond rate)
      : engine_(engine), packets_(packets), time_(rate) {}
  OutPort(const OutPort&) = delete;
  OutPort& operator=(const OutPort&) = delete;
  virtual ~OutPort() = default;

  void push(Packet& packet);

  // Actions of events: the far end pauses or resumes a priority of `port`.
  static void pause(void* port, std::uint64_t priority);
  static void resume(void* port, std::uint64_t priority);

  // Bytes that have not left completely: of a priority, and of all.
  std::uint64_t queued(std::size_t priority) const { return queued_[priority]; }
  std::uint64_t queued() const { return all_queued_; }
  std::uint64_t deepest() const { return deepest_; }
  Picos time_of(std::uint32_t bytes) const { return time_(Bytes(bytes)); }
  Picos now() const { return engine_.now(); }
  Picos busy() const { return line_.busy(engine_.now()); }
  std::uint64_t pauses() const { return pauses_; }
  Picos paused() const;

  // A packet that has left the line.
  struct Sent {
    std::uint32_t bytes;
    std::uint8_t priority;
    std::uint32_t ingress;
  };

 protected:
  // The packet is sent from `begin` to `end`. It belongs to the far end from now on.
  virtual void begins(Packet& packet, Picos begin, Picos end) = 0;
  virtual void ended(const Sent&) {}

  Engine& engine_;

 private:
  static void line_is_free(void* port, std::uint64_t);
  void serve();

  const PacketMemory& packets_;
  TransferTime time_;
  SerialResource line_;
  std::array<PacketQueue, kPriorities> queues_;
  std::array<std::uint64_t, kPriorities> queued_{};
  std::uint64_t all_queued_ = 0;
  std::uint64_t deepest_ = 0;
  unsigned waiting_ = 0;  // priorities with waiting packets, one bit each
  unsigned paused_ = 0;   // paused priorities, one bit each
  bool sending_ = false;
  Sent sent_{};  // while sending_: the packet on the line
  std::uint64_t pauses_ = 0;
  Picos paused_time_{0};  // minus the start time of each pause that goes on
};

}  // namespace verbscope::sim
