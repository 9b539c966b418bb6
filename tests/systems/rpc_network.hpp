// Endpoints for RPCs on a network in memory that delays, reorders, repeats and loses packets. Its adapters read a
// packet some time after it was posted, so that bytes which change too early arrive changed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "systems/rpc/endpoint.hpp"

namespace verbscope::test {

// Time stands still until the network moves it.
struct StillNode {
  Picos* time;
  Picos now() const { return *time; }
  void idle() const {}
  void idle_until(Picos) const {}
  void compute(Nanos) const {}
  void watch(const void*, std::size_t) const {}
  void poll_memory(std::size_t = 1) const {}
  std::uint64_t fetch_add(std::uint64_t& word, std::uint64_t amount) const {
    return std::exchange(word, word + amount);
  }
  void prefetch(const void*) const {}
  void load(const void*) const {}
  ibv_cq* await_event(ibv_comp_channel*, Nanos) const { return nullptr; }
};
static_assert(Node<StillNode>);

struct NetworkFaults {
  double loss = 0;
  double repeat = 0;
  double mark = 0;          // share of packets that switches mark
  Picos delay{1'000'000};   // least
  Picos jitter{0};          // uniform extra delay: packets overtake each other
  Picos reading{0};         // from a post until the adapter has read the packet
  std::uint32_t room = 64;  // packets that an adapter holds until it has read them
  std::uint32_t recvs = 4096;
};

class RpcNetwork;

class NetworkPort {
 public:
  explicit NetworkPort(RpcNetwork& network) : network_(network) {}

  std::uint32_t room() const;
  std::uint64_t appended() const { return appended_; }
  std::uint64_t received() const { return received_; }
  void append(const UdAddress& to, const std::byte* header, const std::byte* data, std::uint32_t bytes, std::uint32_t) {
    ++appended_;
    posted_.push_back({to.remote_qpn, header, {}, data, bytes, Picos(0), hash_of(data, bytes)});
  }
  void append_header(const UdAddress& to, const PacketHeader& header) {
    ++appended_;
    posted_.push_back({to.remote_qpn, nullptr, header, nullptr, 0, Picos(0), hash_of(nullptr, 0)});
  }
  bool post(RunEnd&);
  template <Node N>
  bool flush(N&, RunEnd& end) {
    if (ready_ == posted_.size()) return true;  // nothing was appended
    post(end);
    read_until(Picos::max());
    return true;
  }
  template <class Take>
  int receive(RunEnd&, Take&& take) {
    std::vector<Arrived> packets(arrived_.begin(), arrived_.end());
    arrived_.clear();
    received_ += packets.size();
    for (auto& [bytes, marked] : packets) {
      marked_ = marked;
      const auto length = static_cast<std::uint32_t>(bytes.size());
      bytes.resize(std::max<std::size_t>(length, kPacketHeaderBytes));
      take(bytes.data(), length);
    }
    return static_cast<int>(packets.size());
  }
  // Of the packet that is being taken.
  bool marked(const std::byte*) const { return marked_; }
  bool release(RunEnd&) { return true; }

  // The adapter reads the packets that were posted until `posted`, and sends them.
  void read_until(Picos posted);

  struct Posted {
    std::uint32_t to;
    const std::byte* header;  // null: own_header
    PacketHeader own_header;
    const std::byte* data;
    std::uint32_t bytes;
    Picos at;
    std::size_t hash;  // of the data when it was appended
  };

  static std::size_t hash_of(const std::byte* data, std::uint32_t bytes) {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(data), bytes});
  }

 private:
  friend class RpcNetwork;
  struct Arrived {
    std::vector<std::byte> bytes;
    bool marked = false;
  };
  RpcNetwork& network_;
  std::deque<Posted> posted_;
  std::size_t ready_ = 0;  // of posted_: those whose doorbell was rung
  std::deque<Arrived> arrived_;
  bool marked_ = false;
  std::uint64_t appended_ = 0, received_ = 0;
};

class RpcNetwork {
 public:
  RpcNetwork(std::uint32_t ports, const NetworkFaults& faults, std::uint64_t seed) : faults_(faults), random_(seed) {
    for (std::uint32_t i = 0; i < ports; ++i) ports_.push_back(std::make_unique<NetworkPort>(*this));
  }

  NetworkPort& port(std::uint32_t number) { return *ports_[number]; }
  StillNode node() { return {&now_}; }
  Picos now() const { return now_; }
  const NetworkFaults& faults() const { return faults_; }
  static UdAddress address(std::uint32_t port) { return {nullptr, port, 0}; }

  // The process at a port ends: its adapter sends and holds nothing any more. Packets on their way stay on it.
  void reset(std::uint32_t port) {
    ports_[port]->posted_.clear();
    ports_[port]->ready_ = 0;
    ports_[port]->arrived_.clear();
  }

  // Delivers a packet that no endpoint has sent.
  void deliver(std::uint32_t to, const std::vector<std::byte>& packet, bool marked = false) {
    ports_[to]->arrived_.push_back({packet, marked});
  }

  void advance(Picos step) {
    now_ += step;
    for (const auto& port : ports_) port->read_until(now_ - faults_.reading);
    std::vector<Flying> later;
    std::ranges::stable_sort(flying_, {}, &Flying::arrives);
    for (Flying& packet : flying_) {
      if (packet.arrives > now_) {
        later.push_back(std::move(packet));
      } else if (ports_[packet.to]->arrived_.size() < faults_.recvs) {
        ports_[packet.to]->arrived_.push_back({std::move(packet.bytes), packet.marked});
      }
    }
    flying_ = std::move(later);
  }

  void send(const NetworkPort::Posted& posted) {
    if (NetworkPort::hash_of(posted.data, posted.bytes) != posted.hash) ++changed;
    std::vector<std::byte> bytes(kPacketHeaderBytes + posted.bytes);
    const void* header = posted.header == nullptr ? static_cast<const void*>(&posted.own_header) : posted.header;
    std::memcpy(bytes.data(), header, kPacketHeaderBytes);
    if (posted.bytes > 0) std::memcpy(bytes.data() + kPacketHeaderBytes, posted.data, posted.bytes);
    sent.push_back(load_header(bytes.data()));
    if (chance(faults_.loss)) return;
    const int copies = chance(faults_.repeat) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const Picos extra(static_cast<std::int64_t>(uniform() * static_cast<double>(faults_.jitter.count())));
      flying_.push_back({now_ + faults_.delay + extra, posted.to, bytes, chance(faults_.mark)});
    }
  }

  std::vector<PacketHeader> sent;  // every packet so far
  int changed = 0;                 // packets whose bytes changed before the adapter had read them

 private:
  struct Flying {
    Picos arrives;
    std::uint32_t to;
    std::vector<std::byte> bytes;
    bool marked;
  };

  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool chance(double share) { return share > 0 && uniform() < share; }

  NetworkFaults faults_;
  std::mt19937_64 random_;
  Picos now_{1'000'000};
  std::vector<std::unique_ptr<NetworkPort>> ports_;
  std::vector<Flying> flying_;
};

inline std::uint32_t NetworkPort::room() const {
  const std::uint32_t most = network_.faults().room;
  return most - std::min(most, static_cast<std::uint32_t>(posted_.size()));
}
inline bool NetworkPort::post(RunEnd&) {
  for (; ready_ < posted_.size(); ++ready_) posted_[ready_].at = network_.now();
  return true;
}
inline void NetworkPort::read_until(Picos posted) {
  while (ready_ > 0 && posted_.front().at <= posted) {
    network_.send(posted_.front());
    posted_.pop_front();
    --ready_;
  }
}

}  // namespace verbscope::test
