#include "nic_sim/net/switch.hpp"

#include <algorithm>

namespace verbscope::sim {

class Switch::Output final : public OutPort {
 public:
  Output(Switch& owner, BytesPerSecond rate)
      : OutPort(*owner.home_.engine, owner.home_.packets->memory(), rate), owner_(owner) {}

  void connect(std::uint32_t id, Engine::Action action, void* object) {
    id_ = id;
    action_ = action;
    object_ = object;
  }
  void connect(std::uint32_t id, Switch& next, std::uint32_t port) {
    id_ = id;
    next_ = &next;
    next_port_ = port;
  }

 private:
  void send_begins(Packet& packet, Picos begin, Picos end) override {
    const Wiring& wiring = owner_.wiring_;
    const Picos latency = wiring.switch_latency + wiring.cable;
    const std::uint32_t self = wiring.id_of(owner_.number_);
    if (wiring.marking.marks(queued(packet.priority), owner_.random_)) packet.marked = true;
    if (next_ == nullptr) return wiring.mailbox.send(self, id_, end + latency, action_, object_, as_argument(packet));
    packet.ingress = next_port_;
    wiring.mailbox.send(self, id_, next_->arrival_time(packet, begin, end, latency), &Switch::arrives, next_,
                        as_argument(packet));
  }
  void send_ended(const Sent& sent) override { owner_.left(sent); }

  Switch& owner_;
  std::uint32_t id_ = 0;  // number of the far end in the mailbox
  Engine::Action action_ = nullptr;
  void* object_ = nullptr;
  Switch* next_ = nullptr;  // the far end, if it is a switch
  std::uint32_t next_port_ = 0;
};

Switch::Switch(const Wiring& wiring, std::uint32_t number, const SwitchHome& home, std::uint64_t seed)
    : wiring_(wiring),
      number_(number),
      home_(home),
      random_(seed),
      inputs_(wiring.topology.ports_of(number)),
      losses_(wiring.nodes) {
  for (std::uint32_t port = 0; port < inputs_.size(); ++port) {
    outputs_.push_back(std::make_unique<Output>(*this, wiring.rate_of({number, port})));
  }
}

Switch::~Switch() = default;

void Switch::connect(std::uint32_t port, std::uint32_t id, OutPort& sender) {
  const Picos latency = wiring_.pause_latency(wiring_.rate_of({number_, port}), wiring_.switch_latency);
  inputs_[port].emplace(wiring_.mailbox, *wiring_.switch_discipline, wiring_.id_of(number_), id, sender, latency);
}

void Switch::connect_node(std::uint32_t port, std::uint32_t node, Engine::Action action, void* object,
                          OutPort& sender) {
  connect(port, node, sender);
  outputs_[port]->connect(node, action, object);
}

void Switch::connect_switch(std::uint32_t port, Switch& other, std::uint32_t its_port) {
  const std::uint32_t id = wiring_.id_of(other.number_);
  connect(port, id, other.output(its_port));
  outputs_[port]->connect(id, other, its_port);
}

OutPort& Switch::output(std::uint32_t port) {
  return *outputs_[port];
}
const OutPort& Switch::output(std::uint32_t port) const {
  return *outputs_[port];
}

Picos Switch::arrival_time(const Packet& packet, Picos begin, Picos end, Picos latency) const {
  return begin + latency + std::max(end - begin - output_for(packet).time_of(packet.wire_bytes), Picos(0));
}

void Switch::arrives(void* object, std::uint64_t packet) {
  static_cast<Switch*>(object)->take(as_packet(packet));
}

void Switch::take(Packet& packet) {
  SwitchLosses& losses = losses_[packet.target_node];
  bytes_.in += packet.wire_bytes;
  if (wiring_.loss_probability > 0 && random_.uniform() < wiring_.loss_probability)
    return drop(packet, losses.by_chance);
  Output& out = output_for(packet);
  const std::uint64_t queue = out.queued(packet.priority);
  if (!wiring_.switch_discipline->admits(bytes_.held, queue, packet.wire_bytes))
    return drop(packet, losses.full_buffer);
  bytes_.held += packet.wire_bytes;
  inputs_[packet.ingress]->entered(packet.priority, packet.wire_bytes, home_.engine->now());
  out.push(packet);
}

void Switch::drop(Packet& packet, std::uint64_t& count) {
  ++count;
  bytes_.dropped += packet.wire_bytes;
  home_.packets->give_back(packet);
}

void Switch::left(const OutPort::Sent& sent) {
  bytes_.held -= sent.bytes;
  bytes_.out += sent.bytes;
  inputs_[sent.ingress]->left(sent.priority, sent.bytes, home_.engine->now());
}

}  // namespace verbscope::sim
