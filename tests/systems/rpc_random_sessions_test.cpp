// The invariants of RPCs while sessions are opened and closed at random, and processes die and start again.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/systems/rpc_peer.hpp"

namespace verbscope {
namespace {

using test::kStep;
using test::NetworkFaults;
using test::Peer;
using test::RpcNetwork;

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    NetworkFaults faults;
    const double losses[] = {0, 1e-2, 0.1, 0.3};
    faults.loss = losses[pick(0, 3)];
    faults.repeat = pick(0, 2) == 0 ? 0.1 : 0;
    faults.jitter = Picos(static_cast<std::int64_t>(pick(0, 1) * pick(0, 4'000'000)));
    faults.reading = Picos(static_cast<std::int64_t>(pick(0, 1'000'000)));
    faults.room = static_cast<std::uint32_t>(pick(1, 64));
    options_.credits = static_cast<std::uint32_t>(pick(1, 8));
    options_.recvs = options_.credits * kSessions;
    options_.rto = Picos(static_cast<std::int64_t>(pick(5'000'000, 20'000'000)));
    options_.most_timeouts = static_cast<std::uint32_t>(pick(1, 6));
    options_.control = pick(0, 1) == 0 ? RpcControl::none : RpcControl::timely;
    options_.timely.link = BytesPerSecond{static_cast<double>(pick(50, 3000)) * 1e6};
    options_.bypass_limiter = pick(0, 1) == 0;
    options_.preallocate = pick(0, 1) == 0;
    options_.zero_copy = pick(0, 1) == 0;
    data_ = static_cast<std::uint32_t>(pick(16, 200));
    const auto count = static_cast<std::uint32_t>(pick(2, 4));
    network_ = std::make_unique<RpcNetwork>(count, faults, seed + 1);
    for (std::uint32_t port = 0; port < count; ++port) {
      processes_.emplace_back();
      start(port);
    }
  }

  void run() {
    for (int step = 0; step < 4000 && !testing::Test::HasFailure(); ++step) {
      if (pick(0, 9) == 0) act();
      advance();
    }
    quiet_ = true;
    bool over = false;
    for (int step = 0; step < 100'000 && !over && !testing::Test::HasFailure(); ++step) {
      advance();
      over = messages_.empty();
      for (const Process& process : processes_) {
        over = over && process.peer->all_over() && process.peer->endpoint.drained() && process.peer->waiting.empty();
      }
    }
    ASSERT_TRUE(over) << "calls without an end";
    for (std::uint32_t port = 0; port < processes_.size(); ++port) check_calls(port);
    for (const auto& [id, times] : handled_) EXPECT_EQ(times, 1) << "call " << id;
    for (std::uint32_t port = 0; port < processes_.size(); ++port) check_receives(port);
    EXPECT_EQ(network_->changed, 0) << "a queue had bytes of a call that was over";
  }

  std::uint64_t answered = 0, failed = 0, deaths = 0;

 private:
  static constexpr std::uint32_t kSessions = 12;  // of an endpoint at most

  struct Process {
    std::unique_ptr<Peer> peer;
    int life = 0;                                        // how often it was started
    std::map<std::uint16_t, std::uint32_t> client_ends;  // open: the port that they call
    std::map<std::uint16_t, std::uint32_t> server_ends;
  };
  // A message of the management, which the thread handles in a later pass.
  struct Message {
    std::uint64_t at;
    std::function<void()> happen;
  };

  std::uint64_t pick(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random_);
  }
  void later(std::function<void()> happen) { messages_.push_back({steps_ + pick(0, 60), std::move(happen)}); }

  RpcSessions<test::NetworkPort>& sessions(std::uint32_t port) { return processes_[port].peer->endpoint.sessions(); }
  bool lives(std::uint32_t port, int life) const { return processes_[port].life == life; }

  void start(std::uint32_t port) {
    Process& process = processes_[port];
    ++process.life;
    process.client_ends.clear();
    process.server_ends.clear();
    RpcOptions options = options_;
    options.first_epoch = static_cast<std::uint16_t>(starts_++ * 1000);
    process.peer = std::make_unique<Peer>(*network_, port, data_, options);
    process.peer->answer_later = pick(0, 2) == 0;
    process.peer->by_worker = pick(0, 2) == 0;
  }

  // The process dies and starts again. Its peers get to know it, or notice time-outs.
  void kill(std::uint32_t port) {
    ++deaths;
    count_calls(port);
    processes_[port].peer.reset();
    network_->reset(port);
    for (std::uint32_t other = 0; other < processes_.size(); ++other) {
      if (other == port) continue;
      for (const auto& [number, peer] : processes_[other].server_ends) {
        if (peer == port)
          later([this, other, life = processes_[other].life, number = number] { close_server(other, life, number); });
      }
      for (const auto& [number, peer] : processes_[other].client_ends) {
        if (peer == port && pick(0, 1) == 0)
          later([this, other, life = processes_[other].life, number = number] {
            if (lives(other, life) && processes_[other].client_ends.contains(number)) sessions(other).fail(number);
          });
      }
    }
    start(port);
  }
  void close_server(std::uint32_t port, int life, std::uint16_t number) {
    if (lives(port, life) && processes_[port].server_ends.erase(number) == 1) sessions(port).close(number);
  }

  void open(std::uint32_t client, std::uint32_t server) {
    if (processes_[client].client_ends.size() + processes_[client].server_ends.size() + opening_ >= kSessions / 2)
      return;
    SessionName name;
    try {
      name = sessions(client).reserve();
    } catch (const std::exception&) {
      return;  // closed ends still have calls or handlers
    }
    processes_[client].client_ends[name.number] = server;
    ++opening_;
    later([this, client, server, name, life = processes_[client].life, theirs = processes_[server].life] {
      --opening_;
      if (!lives(client, life)) return;
      SessionName remote;
      bool accepted = lives(server, theirs);
      try {
        if (accepted) remote = sessions(server).accept(RpcNetwork::address(client), name);
      } catch (const std::exception&) {
        accepted = false;
      }
      if (accepted) processes_[server].server_ends[remote.number] = client;
      later([this, client, server, name, remote, life, theirs, accepted] {
        if (lives(client, life) && processes_[client].client_ends.contains(name.number)) {
          if (accepted) return sessions(client).connect(name.number, RpcNetwork::address(server), remote);
          return sessions(client).fail(name.number);
        }
        if (accepted) close_server(server, theirs, remote.number);
      });
    });
  }

  void act() {
    const auto port = static_cast<std::uint32_t>(pick(0, processes_.size() - 1));
    Process& process = processes_[port];
    const std::uint64_t what = pick(0, 99);
    if (what < 20) {
      const auto other = static_cast<std::uint32_t>(pick(0, processes_.size() - 1));
      if (other != port) open(port, other);
    } else if (what < 28 && !process.client_ends.empty()) {
      const auto end =
          std::next(process.client_ends.begin(), static_cast<std::ptrdiff_t>(pick(0, process.client_ends.size() - 1)));
      sessions(port).close(end->first);
      process.client_ends.erase(end);
    } else if (what < 33 && !process.server_ends.empty()) {
      close_server(port, process.life, process.server_ends.begin()->first);
    } else if (what == 33) {
      kill(port);
    } else if (!process.client_ends.empty()) {
      const auto end =
          std::next(process.client_ends.begin(), static_cast<std::ptrdiff_t>(pick(0, process.client_ends.size() - 1)));
      for (std::uint64_t calls = pick(1, 12); calls > 0; --calls) {
        const auto back = static_cast<std::uint32_t>(pick(0, 8 * data_));
        process.peer->send(end->first, ++id_, static_cast<std::uint32_t>(pick(12, 8 * data_)), back, back);
      }
    }
  }

  void advance() {
    ++steps_;
    for (std::size_t i = 0; i < messages_.size();) {
      if (messages_[i].at > steps_) {
        ++i;
        continue;
      }
      const std::function<void()> happen = std::move(messages_[i].happen);
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
      happen();
    }
    bool moved = false;
    for (Process& process : processes_) {
      test::StillNode node = network_->node();
      RunEnd end;
      const int received = process.peer->endpoint.pass(node, end);
      ASSERT_GE(received, 0);
      moved = moved || received > 0;
      if (!process.peer->waiting.empty() && pick(0, 3) == 0) {
        process.peer->answer(process.peer->waiting.front());
        process.peer->waiting.pop_front();
      }
      for (const auto& [number, peer] : process.client_ends) {
        ASSERT_NO_FATAL_FAILURE(test::expect_credits_kept(*process.peer, number));
      }
    }
    network_->advance(moved || !quiet_ ? kStep : 5 * kStep);
  }

  void count_calls(std::uint32_t port) {
    const Peer& peer = *processes_[port].peer;
    EXPECT_EQ(peer.wrong, 0);
    EXPECT_EQ(peer.endpoint.counts().unknown, 0u);
    EXPECT_EQ(peer.late_bytes(), 0);
    for (const Peer::Call& call : peer.calls) {
      EXPECT_LE(call.over, 1);
      if (call.over > 0) ++(call.status == RpcStatus::answered ? answered : failed);
    }
    for (const auto& [id, times] : peer.handled) handled_[id] += times;
  }

  void check_calls(std::uint32_t port) {
    count_calls(port);
    for (const Peer::Call& call : processes_[port].peer->calls) EXPECT_EQ(call.over, 1) << "call " << call.id;
  }
  // With all sessions closed their RECVs are free.
  void check_receives(std::uint32_t port) {
    Process& process = processes_[port];
    for (const auto& [number, peer] : std::exchange(process.client_ends, {})) sessions(port).close(number);
    for (const auto& [number, peer] : std::exchange(process.server_ends, {})) sessions(port).close(number);
    for (int i = 0; i < 100; ++i) advance();
    for (std::uint32_t i = 0; i < kSessions; ++i) sessions(port).reserve();
    EXPECT_THROW(sessions(port).reserve(), std::exception);
  }

  std::mt19937_64 random_;
  RpcOptions options_;
  std::uint32_t data_;
  std::unique_ptr<RpcNetwork> network_;
  std::vector<Process> processes_;
  std::vector<Message> messages_;
  std::map<std::uint64_t, int> handled_;  // by processes that are over
  std::uint64_t id_ = 0, steps_ = 0;
  std::uint32_t starts_ = 0, opening_ = 0;
  bool quiet_ = false;
};

TEST(RpcSessions, KeepTheInvariantsWhileSessionsCloseAndProcessesDie) {
  std::uint64_t answered = 0, failed = 0, deaths = 0;
  const std::uint64_t seeds = test::for_each_seed(40, 10, [&](std::uint64_t seed) {
    World world(seed);
    world.run();
    answered += world.answered;
    failed += world.failed;
    deaths += world.deaths;
  });
  // Both ends of a call are common.
  EXPECT_GT(answered, 20 * seeds);
  EXPECT_GT(failed, 20 * seeds);
  EXPECT_GT(deaths, seeds);
}

}  // namespace
}  // namespace verbscope
