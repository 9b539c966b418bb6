// The two sides of an Ethernet port, of a node or of a switch.
#pragma once

#include <array>
#include <cstdint>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/serial_resource.hpp"
#include "nic_sim/net/discipline.hpp"
#include "nic_sim/time/engine.hpp"
#include "nic_sim/time/logical_process.hpp"

namespace verbscope::sim {

inline constexpr std::size_t kPriorities = 8;  // IEEE 802.1Q

// The sending side: a queue per priority, and the line. The highest priority that is not paused goes first.
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
  virtual void send_begins(Packet& packet, Picos begin, Picos end) = 0;
  virtual void send_ended(const Sent&) {}

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

// The receiving side: bytes of its sender in the buffer, by priority, and pauses of that sender.
class Ingress {
 public:
  // `self` and `sender`: numbers in the mailbox. `latency`: time from the decision to pause until the sender acts on
  // it.
  Ingress(Mailbox& mailbox, const Discipline& discipline, std::uint32_t self, std::uint32_t sender, OutPort& far_end,
          Picos latency)
      : mailbox_(&mailbox),
        discipline_(&discipline),
        self_(self),
        sender_(sender),
        far_end_(&far_end),
        latency_(latency) {}

  // A packet of `bytes` enters the buffer, or leaves it, at `now`.
  void entered(std::size_t priority, std::uint32_t bytes, Picos now) {
    held_[priority] += bytes;
    update_pause(priority, now);
  }
  void left(std::size_t priority, std::uint32_t bytes, Picos now) {
    held_[priority] -= bytes;
    update_pause(priority, now);
  }
  // Pauses sent so far.
  std::uint64_t pauses() const { return pauses_; }

 private:
  void update_pause(std::size_t priority, Picos now) {
    const unsigned bit = 1u << priority;
    const bool paused = (paused_ & bit) != 0;
    if (discipline_->pauses(held_[priority], paused) == paused) return;
    paused_ ^= bit;
    pauses_ += paused ? 0 : 1;
    mailbox_->send(self_, sender_, now + latency_, paused ? &OutPort::resume : &OutPort::pause, far_end_, priority);
  }

  Mailbox* mailbox_;
  const Discipline* discipline_;
  std::uint32_t self_;
  std::uint32_t sender_;
  OutPort* far_end_;
  Picos latency_;
  std::array<std::uint64_t, kPriorities> held_{};
  unsigned paused_ = 0;  // paused priorities, one bit each
  std::uint64_t pauses_ = 0;
};

}  // namespace verbscope::sim
