// An Ethernet switch: outputs with queues that share one packet buffer, and an Ingress per input. It is cut-through: it
// forwards a packet while it arrives, from a slow line to a fast one only so early that the bytes arrive in time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nic_sim/net/fabric.hpp"
#include "nic_sim/net/port.hpp"
#include "nic_sim/net/topology.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

// Bytes of a switch so far: in = out + dropped + held.
struct SwitchBytes {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t dropped = 0;
  std::uint64_t held = 0;
};

// Packets that a switch has dropped.
struct SwitchLosses {
  std::uint64_t by_chance = 0;
  std::uint64_t full_buffer = 0;
};

class Switch {
 public:
  Switch(const Wiring& wiring, std::uint32_t number, const SwitchHome& home, std::uint64_t seed);
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;
  ~Switch();

  std::uint32_t number() const { return number_; }
  std::uint32_t ports() const { return static_cast<std::uint32_t>(inputs_.size()); }

  // Connects a port to a node, whose `action` with `object` receives complete packets, or to a port of another switch.
  // `sender` is the sending side at the other end.
  void connect_node(std::uint32_t port, std::uint32_t node, Engine::Action action, void* object, OutPort& sender);
  void connect_switch(std::uint32_t port, Switch& other, std::uint32_t its_port);

  // Action of an event: a packet arrives at port Packet::ingress of the switch `object`, and may be forwarded.
  static void arrives(void* object, std::uint64_t packet);
  // Time of that event for a packet that is sent from `begin` to `end`, and whose first bit takes `latency`.
  Picos arrival_time(const Packet& packet, Picos begin, Picos end, Picos latency) const;

  OutPort& output(std::uint32_t port);
  const OutPort& output(std::uint32_t port) const;
  const SwitchBytes& bytes() const { return bytes_; }
  const SwitchLosses& losses(std::uint32_t node) const { return losses_[node]; }  // packets to this node

 private:
  class Output;

  Output& output_for(const Packet& packet) const { return *outputs_[wiring_.topology.route(number_, packet)]; }
  void connect(std::uint32_t port, std::uint32_t id, OutPort& sender);
  void take(Packet& packet);
  void drop(Packet& packet, std::uint64_t& count);
  void left(const OutPort::Sent& sent);

  const Wiring& wiring_;
  std::uint32_t number_;
  SwitchHome home_;
  Random random_;
  SwitchBytes bytes_;
  std::vector<std::unique_ptr<Output>> outputs_;
  std::vector<std::optional<Ingress>> inputs_;  // empty: nothing is connected
  std::vector<SwitchLosses> losses_;
};

}  // namespace verbscope::sim
