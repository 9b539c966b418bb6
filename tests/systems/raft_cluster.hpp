// Replicas in one process, over a network in memory that delays, loses and reorders messages, in virtual time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "systems/raft/replica.hpp"

namespace verbscope {

class RaftCluster;

class RaftTestNode final : public RaftNetwork {
 public:
  RaftTestNode(RaftCluster& cluster, raft_id id) : cluster_(cluster), id_(id) {}

  std::byte* prepare(raft_id to, std::size_t bytes, MessageOrder order) override;
  void send(std::uint64_t tag) override;
  void start(const ReplicaOptions& options);
  void kill() {
    replica.reset();
    log.reset();
    asked_.clear();
  }
  void poll();
  void receive(raft_id from, const std::vector<std::byte>& bytes, Picos sent, Picos asked, bool result);

  MemoryStorage log_storage, snapshot_storage;
  std::unique_ptr<RaftLog> log;
  std::unique_ptr<Replica> replica;
  bool cut = false;

 private:
  RaftCluster& cluster_;
  const raft_id id_;
  raft_id to_ = 0;
  bool result_ = false;
  std::vector<std::byte> message_;
  std::vector<std::uint64_t> sent_;
  std::map<raft_id, std::deque<Picos>> asked_;  // when the messages were sent that results may answer
};

class RaftCluster {
 public:
  struct Options {
    std::size_t replicas = 3;
    std::uint64_t seed = 1;
    double loss = 0;
    Picos delay{2'000'000};  // to deliver a message; up to as much again at random
    std::uint32_t snapshot_every = 1000;
    ReadMode reads = ReadMode::leader;
    PlantedBug planted = PlantedBug::none;
  };
  static constexpr Picos kElection{1'000'000'000};  // 1 ms
  static constexpr Picos kStep{1'000'000};          // 1 us

  explicit RaftCluster(const Options& options) : options_(options), random_(options.seed) {
    for (raft_id id = 1; id <= options.replicas; ++id) {
      addresses_.push_back("node" + std::to_string(id));
      nodes_.push_back(std::make_unique<RaftTestNode>(*this, id));
    }
    for (raft_id id = 1; id <= options.replicas; ++id) start(id);
  }

  void start(raft_id id) {
    ReplicaOptions options{.id = id,
                           .io = {.addresses = addresses_,
                                  .election = kElection,
                                  .heartbeat = kElection / 10,
                                  .random = [this] { return random_(); },
                                  .compute = [](Picos) {}},
                           .keys = 1000,
                           .snapshot_every = options_.snapshot_every,
                           .reads = options_.reads,
                           .planted = options_.planted};
    node(id).start(options);
  }
  RaftTestNode& node(raft_id id) { return *nodes_[id - 1]; }
  std::size_t size() const { return nodes_.size(); }
  Picos now() const { return now_; }
  std::mt19937_64& random() { return random_; }

  void step() {
    now_ += kStep;
    for (std::size_t i = 0; i < in_flight_.size();) {
      if (in_flight_[i].at > now_) {
        ++i;
        continue;
      }
      const Message message = std::move(in_flight_[i]);
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
      RaftTestNode& to = node(message.to);
      if (to.replica == nullptr || to.cut || node(message.from).cut) continue;
      to.receive(message.from, message.bytes, message.sent, message.asked, message.result);
    }
    for (const auto& each : nodes_) each->poll();
  }
  void run(Picos time) {
    for (const Picos end = now_ + time; now_ < end;) step();
  }
  // Runs until `done()`; false after `most`.
  template <class Done>
  bool run_until(Done done, Picos most = 200 * kElection) {
    for (const Picos end = now_ + most; now_ < end;) {
      if (done()) return true;
      step();
    }
    return done();
  }

  // The replica that leads in the latest term among those that run and are not cut off; 0: none.
  raft_id leader() {
    raft_id best = 0;
    raft_term term = 0;
    for (raft_id id = 1; id <= size(); ++id) {
      const RaftTestNode& each = node(id);
      if (each.replica == nullptr || each.cut || !each.replica->leads()) continue;
      if (each.replica->c_raft().current_term > term) {
        best = id;
        term = each.replica->c_raft().current_term;
      }
    }
    return best;
  }
  bool await_leader() {
    return run_until([this] { return leader() != 0; });
  }

  // The replicas' logs, for messages.
  std::string describe() {
    std::string text;
    for (raft_id id = 1; id <= size(); ++id) {
      if (node(id).replica == nullptr) continue;
      const raft& r = node(id).replica->c_raft();
      text +=
          fmt::format("{}: state {} term {} log {}..{} stored {} commit {} applied {}\n", id, r.state, r.current_term,
                      node(id).log->first(), node(id).log->next() - 1, r.last_stored, r.commit_index, r.last_applied);
      for (unsigned i = 0; node(id).replica->leads() && i < r.configuration.n; ++i) {
        const raft_progress& p = r.leader_state.progress[i];
        text += fmt::format("   {}: state {} next {} match {} snapshot {}\n", i + 1, p.state, p.next_index,
                            p.match_index, p.snapshot_index);
      }
    }
    return text;
  }

  // Asks a replica. The answer is in answers() under the returned number.
  std::uint64_t ask(raft_id id, const StoreRequest& request) {
    const std::uint64_t number = ++asked_;
    std::vector<std::byte> bytes(StoreRequest::bytes(request.op));
    std::memcpy(bytes.data(), &request, bytes.size());
    node(id).replica->request({.slot = &slot_, .number = number}, bytes, now_);
    return number;
  }
  const std::map<std::uint64_t, StoreAnswer>& answers() const { return answers_; }
  StoreAnswer ask_and_wait(raft_id id, const StoreRequest& request) {
    const std::uint64_t number = ask(id, request);
    if (!run_until([&] { return answers_.contains(number); })) return {.status = StoreStatus::unknown};
    return answers_.at(number);
  }

 private:
  friend class RaftTestNode;
  struct Message {
    Picos at;
    raft_id from;
    raft_id to;
    std::vector<std::byte> bytes;
    Picos sent;
    Picos asked;
    bool result;
  };

  const Options options_;
  std::mt19937_64 random_;
  std::vector<std::string> addresses_;
  std::vector<Message> in_flight_;
  std::map<std::uint64_t, StoreAnswer> answers_;
  std::uint64_t asked_ = 0;
  ServerSlot slot_;
  Picos now_{0};
  std::vector<std::unique_ptr<RaftTestNode>> nodes_;
};

inline std::byte* RaftTestNode::prepare(raft_id to, std::size_t bytes, MessageOrder order) {
  if (cut) return nullptr;
  to_ = to;
  result_ = order == MessageOrder::answer;
  message_.assign(bytes, std::byte{0});
  return message_.data();
}

inline void RaftTestNode::send(std::uint64_t tag) {
  std::mt19937_64& random = cluster_.random_;
  Picos asked{0};
  if (std::deque<Picos>& open = asked_[to_]; result_ && !open.empty()) {
    asked = open.front();
    open.pop_front();
  }
  if (static_cast<double>(random() % 10000) >= cluster_.options_.loss * 10000) {
    const Picos delay =
        cluster_.options_.delay + cluster_.options_.delay * static_cast<std::int64_t>(random() % 100) / 100;
    cluster_.in_flight_.push_back({cluster_.now_ + delay, id_, to_, message_, cluster_.now_, asked, result_});
  }
  sent_.push_back(tag);
}

inline void RaftTestNode::start(const ReplicaOptions& options) {
  log = std::make_unique<RaftLog>(log_storage, snapshot_storage);
  replica = std::make_unique<Replica>(
      options, *log, *this,
      [](void* cluster, const RpcHandle& handle, const StoreAnswer& answer) {
        static_cast<RaftCluster*>(cluster)->answers_[handle.number] = answer;
      },
      &cluster_);
}

inline void RaftTestNode::receive(raft_id from, const std::vector<std::byte>& bytes, Picos sent, Picos asked,
                                  bool result) {
  if (!result) asked_[from].push_back(sent);
  replica->io().receive(bytes, cluster_.now_, asked);
  if (!replica->io().appending()) asked_.clear();
}

inline void RaftTestNode::poll() {
  if (replica == nullptr) return;
  for (const std::uint64_t tag : std::exchange(sent_, {})) replica->io().sent(tag, true);
  replica->poll(cluster_.now_);
  if (!replica->io().appending()) asked_.clear();
}

}  // namespace verbscope
