// Services on a simulated cluster whose machines are killed, started again, cut off, paused and slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/systems/test_service.hpp"

namespace verbscope {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(ServiceFaults, AKilledServerEndsWhereItWaitsAndItsPeersNoticeAtOnce) {
  TestService service;
  int destroyed = 0;
  service.beside = [&](ServiceThread& thread) {
    const std::shared_ptr<int> on_the_stack(&destroyed, [](int* n) { ++*n; });
    while (thread.pass()) {
    }
  };
  Picos killed{0}, noticed{0};
  service.faults = [&](SimFaults& faults) {
    faults.wait_until(milliseconds(2));
    killed = faults.now();
    EXPECT_TRUE(faults.runs(0));
    faults.kill(0);
    EXPECT_FALSE(faults.runs(0));
    EXPECT_EQ(destroyed, 1);
    faults.wait_until(milliseconds(4));
    faults.restart(0);
  };
  service.client = [&](ServiceThread& thread) {
    std::uint16_t session = thread.connect(thread.server());
    while (service.call_once(thread, session) == RpcStatus::answered) {
    }
    noticed = thread.now();
    EXPECT_EQ(thread.state(session), SessionState::failed);
    EXPECT_EQ(thread.failure(session), "node0 has closed the connection");
    thread.disconnect(session);
    session = thread.open(thread.server());
    EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);  // after the restart
    EXPECT_GE(thread.now(), Picos(milliseconds(4)));
    EXPECT_LE(thread.now(), Picos(milliseconds(5)));
  };
  EXPECT_EQ(service.run(), 0) << service.error;
  EXPECT_EQ(killed, Picos(milliseconds(2)));
  EXPECT_GE(noticed, killed - microseconds(1));  // the beginning of the pass
  EXPECT_LE(noticed, killed + microseconds(100));
  EXPECT_EQ(destroyed, 2);
}

TEST(ServiceFaults, AServerThatDoesNotRunIsGivenUpAfterTheTimeout) {
  TestService service;
  service.faults = [](SimFaults& faults) { faults.kill(0); };
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.open(thread.server());
    for (std::uint64_t passes = 0; thread.now() < Picos(milliseconds(29)) && thread.pass();) ++passes;
    EXPECT_EQ(thread.state(session), SessionState::opening);
    wait(thread, milliseconds(2));
    EXPECT_EQ(thread.state(session), SessionState::failed);
    EXPECT_EQ(thread.failure(session), "node0 accepts no connection, waited 0.03 s");
  };
  EXPECT_EQ(service.run({"--timeout=30ms"}), 0) << service.error;
}

TEST(ServiceFaults, ACableThatIsJoinedAgainLosesNoCall) {
  TestService service;
  service.faults = [](SimFaults& faults) {
    faults.wait_until(milliseconds(1));
    faults.cut(0);
    faults.wait_until(milliseconds(10));
    faults.join(0);
  };
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    wait(thread, milliseconds(2));
    const std::uint16_t other = thread.open(thread.server());
    EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);
    EXPECT_GE(thread.now(), Picos(milliseconds(10)));
    EXPECT_GT(thread.counts().retransmitted, 0u);
    EXPECT_EQ(service.call_once(thread, other), RpcStatus::answered);
  };
  EXPECT_EQ(service.run({"--rto=1ms", "--most_timeouts=100"}), 0) << service.error;
}

TEST(ServiceFaults, ConnectionsOverACutCableBreakAfterTheSilenceOfTcp) {
  TestService service;
  service.machines = 2;
  service.faults = [](SimFaults& faults) {
    faults.wait_until(milliseconds(1));
    faults.cut(0);
  };
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t cut = thread.connect("node0"), other = thread.connect("node1");
    wait(thread, seconds(14));
    EXPECT_EQ(thread.state(cut), SessionState::open);  // no call was made
    wait(thread, std::chrono::seconds(2));
    EXPECT_EQ(thread.state(cut), SessionState::failed);
    EXPECT_EQ(thread.failure(cut), "node0 does not respond");
    EXPECT_EQ(service.call_once(thread, other), RpcStatus::answered);
  };
  EXPECT_EQ(service.run(), 0) << service.error;
}

TEST(ServiceFaults, APeerThatDiesBehindACutCableIsNoticedWhenItIsJoined) {
  TestService service;
  service.faults = [](SimFaults& faults) {
    faults.wait_until(milliseconds(1));
    faults.cut(0);
    faults.kill(0);
    faults.restart(0);
    faults.wait_until(milliseconds(3));
    faults.join(0);
  };
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    wait(thread, milliseconds(2));
    EXPECT_EQ(thread.state(session), SessionState::open);
    wait(thread, milliseconds(2));
    EXPECT_EQ(thread.failure(session), "node0 has closed the connection");
    thread.disconnect(session);
    EXPECT_EQ(service.call_once(thread, thread.connect(thread.server())), RpcStatus::answered);
  };
  EXPECT_EQ(service.run(), 0) << service.error;
}

TEST(ServiceFaults, APausedServerAnswersLaterAndASlowOneMoreSlowly) {
  TestService service;
  service.before_answer = [&](const RpcRequest&) { service.server->compute(microseconds(50)); };
  service.faults = [](SimFaults& faults) {
    faults.wait_until(milliseconds(1));
    faults.pause(0, milliseconds(3));
    faults.wait_until(milliseconds(10));
    faults.slow(0, 4);
    faults.wait_until(milliseconds(20));
    faults.slow(0, 1);
  };
  const auto calls_until = [&](ServiceThread& thread, std::uint16_t session, Picos end) {
    int calls = 0;
    for (; thread.now() < end; ++calls) EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);
    return calls;
  };
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    wait(thread, milliseconds(2));
    EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);
    EXPECT_GE(thread.now(), Picos(milliseconds(4)));
    EXPECT_LE(thread.now(), Picos(milliseconds(5)));
    wait(thread, milliseconds(11) - thread.now());
    const int slow = calls_until(thread, session, milliseconds(19));
    wait(thread, milliseconds(21) - thread.now());
    const int usual = calls_until(thread, session, milliseconds(29));
    EXPECT_NEAR(usual, 150, 10);  // 8 ms of 50 us and the round trip
    EXPECT_NEAR(slow * 4, usual, usual / 8);
  };
  EXPECT_EQ(service.run(), 0) << service.error;
}

TEST(ServiceFaults, RefusesFaultsOfMachinesThatAreNotThere) {
  const auto error_of = [](const std::function<void(SimFaults&)>& faults) {
    TestService service;
    service.client = [](ServiceThread& thread) { wait(thread, milliseconds(1)); };
    service.faults = faults;
    EXPECT_EQ(service.run(), 1);
    return service.error;
  };
  EXPECT_THAT(error_of([](SimFaults& faults) { faults.kill(7); }), HasSubstr("machine 7: the cluster has 2"));
  EXPECT_THAT(error_of([](SimFaults& faults) { faults.restart(1); }), HasSubstr("restart 1: node1 runs"));
  EXPECT_THAT(error_of([](SimFaults& faults) {
                faults.wait_until(microseconds(50));
                faults.kill(0);
                faults.kill(0);
              }),
              HasSubstr("kill 0: node0 does not run"));
  EXPECT_THAT(error_of([](SimFaults& faults) { faults.slow(0, 0.5); }), HasSubstr("factor 0.5"));
}

TEST(ServiceFaults, AllMachinesAreKilledAndStartedAgain) {
  TestService service;
  int done = 0;
  service.client = [&](ServiceThread& thread) {
    EXPECT_EQ(service.call_once(thread, thread.connect(thread.server())), RpcStatus::answered);
    ++done;
  };
  service.faults = [](SimFaults& faults) {
    for (const std::uint32_t machine : {0u, 1u}) faults.kill(machine);
    faults.wait_until(milliseconds(2));
    for (const std::uint32_t machine : {0u, 1u}) faults.restart(machine);
    faults.wait_until(seconds(1000));
    ADD_FAILURE() << "the run waits for the script";
  };
  EXPECT_EQ(service.run(), 0) << service.error;
  EXPECT_EQ(done, 1);
}

TEST(ServiceFaults, AClientIsKilledAndStartedAgain) {
  TestService service;
  int begun = 0, done = 0;
  service.client = [&](ServiceThread& thread) {
    ++begun;
    const std::uint16_t session = thread.connect(thread.server());
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);
    ++done;
  };
  service.faults = [](SimFaults& faults) {
    faults.wait_until(milliseconds(1));  // threads register memory before
    faults.kill(1);
    faults.wait_until(milliseconds(2));
    faults.restart(1);
  };
  EXPECT_EQ(service.run(), 0) << service.error;
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(done, 1);
}

// Three servers that call each other, and two clients, under a random script of faults. Each call has a number of its
// own. Returns what happened, in order.
class Chaos final : public Service {
 public:
  explicit Chaos(std::uint64_t seed) : seed_(seed) {}
  Description describe() const override { return {"chaos", "For tests.", ""}; }
  std::uint32_t servers() const override { return kServers; }

  void serve(ServiceThread& thread) override {
    Caller caller{*this, thread};
    if (workers()) {
      thread.serve_by_worker(kEcho, &Caller::work, &caller, kBytes);
    } else {
      thread.serve(kEcho, &Caller::answer, &caller);
    }
    while (thread.pass()) caller.step(2);
  }
  void call(ServiceThread& thread) override {
    Caller caller{*this, thread};
    while (caller.answered < kAnswers && thread.pass()) caller.step(4);
    while (!caller.open_calls.empty() && thread.pass()) {
    }
    EXPECT_TRUE(caller.open_calls.empty());
  }

  void script(SimFaults& faults) override {
    std::vector<std::uint32_t> cuts(kMachines);
    for (int i = 0; i < 12; ++i) {
      faults.wait_until(faults.now() + microseconds(20 + faults.random() % 500));
      const std::uint32_t machine = static_cast<std::uint32_t>(faults.random() % kMachines);
      const std::uint64_t fault = faults.random() % 6;
      note("fault", {static_cast<std::uint64_t>(faults.now().count()), machine, fault});
      if (fault < 2) {
        faults.runs(machine) ? faults.kill(machine) : faults.restart(machine);
      } else if (fault < 4) {
        cuts[machine] ^= 1;
        cuts[machine] != 0 ? faults.cut(machine) : faults.join(machine);
      } else if (fault < 5) {
        faults.pause(machine, microseconds(faults.random() % 1000));
      } else {
        faults.slow(machine, 1 + static_cast<double>(faults.random() % 8));
      }
    }
    for (std::uint32_t machine = 0; machine < kMachines; ++machine) {
      if (cuts[machine] != 0) faults.join(machine);
      if (!faults.runs(machine)) faults.restart(machine);
      faults.slow(machine, 1);
    }
  }

  std::string run() {
    std::string seed = "--seed=" + std::to_string(seed_);
    std::vector<std::string> words{"chaos",       "--fabric=sim:cx4",  "--clients=2",    seed,          "--rto=200us",
                                   "--loss=0.01", "--most_timeouts=5", "--timeout=20ms", "--recvs=512", "--credits=8"};
    if (workers()) words.emplace_back("--workers=2");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(service_main(*this, static_cast<int>(words.size()), arguments.data()), 0) << "seed " << seed_;
    return events_;
  }

  std::size_t unanswered() const { return ended_.size() - answered_.size(); }
  // A call that ended without an answer was handled once at most, any other call once.
  void check() const {
    for (const auto& [call, times] : handled_) EXPECT_EQ(times, 1) << "call " << call << ", seed " << seed_;
    for (const auto& [call, times] : ended_) EXPECT_EQ(times, 1) << "call " << call << ", seed " << seed_;
    for (const std::uint64_t call : answered_) EXPECT_EQ(handled_.count(call), 1u) << "call " << call;
    EXPECT_GE(answered_.size(), 2 * kAnswers);
  }

 private:
  static constexpr std::uint32_t kServers = 3, kMachines = 5;
  static constexpr std::uint64_t kAnswers = 150;
  static constexpr std::uint32_t kBytes = 1500;  // two packets

  bool workers() const { return seed_ % 2 == 1; }

  // The calls of one thread to all servers.
  struct Caller {
    struct Call {
      std::uint64_t number = 0;
      MessageBuffer request{}, response{};
    };
    Chaos& chaos;
    ServiceThread& thread;
    std::map<std::uint32_t, std::uint16_t> sessions{};  // by server
    std::map<std::uint64_t, Call> open_calls{};         // by number
    std::vector<Call> idle{};
    std::uint64_t answered = 0;

    void note_handled(const RpcRequest& request) const {
      std::uint64_t number = 0;
      std::memcpy(&number, request.data, sizeof number);
      EXPECT_EQ(request.bytes, kBytes);
      ++chaos.handled_[number];
      chaos.note("handle", {thread.machine(), number});
    }
    static void work(void* self, ServiceWork& work) noexcept {
      static_cast<Caller*>(self)->note_handled(work.request);
      work.computing = microseconds(20);
      std::memcpy(work.response.data, work.request.data, kBytes);
    }
    static void answer(void* self, const RpcRequest& request) {
      const auto& caller = *static_cast<Caller*>(self);
      caller.note_handled(request);
      MessageBuffer* const response = caller.thread.response(request.handle, request.bytes);
      if (response == nullptr) return;
      std::memcpy(response->data, request.data, request.bytes);
      caller.thread.respond(request.handle);
    }
    static void end(void* self, std::uint64_t number, RpcStatus status) {
      auto& caller = *static_cast<Caller*>(self);
      ++caller.chaos.ended_[number];
      caller.chaos.note("end", {number, static_cast<std::uint64_t>(status)});
      const auto found = caller.open_calls.find(number);
      ASSERT_NE(found, caller.open_calls.end());
      if (status == RpcStatus::answered) {
        ++caller.answered;
        caller.chaos.answered_.push_back(number);
        EXPECT_EQ(found->second.response.bytes, kBytes);
        EXPECT_EQ(std::memcmp(found->second.response.data, found->second.request.data, kBytes), 0);
      }
      caller.idle.push_back(found->second);
      caller.open_calls.erase(found);
    }

    void step(std::size_t most) {
      const auto server = static_cast<std::uint32_t>(thread.random() % kServers);
      if (server == thread.machine()) return;
      const auto found = sessions.find(server);
      if (found == sessions.end()) {
        sessions[server] = thread.open(thread.servers()[server]);
      } else if (thread.state(found->second) == SessionState::failed) {
        chaos.note(thread.failure(found->second).c_str(), {thread.machine()});
        thread.disconnect(found->second);
        sessions.erase(found);
      } else if (open_calls.size() < most && thread.random() % 4 == 0) {
        send(found->second);
      }
    }
    void send(std::uint16_t session) {
      if (idle.empty()) idle.push_back({0, thread.allocate(kBytes), thread.allocate(kBytes)});
      Call& call = open_calls[++chaos.calls_] = idle.back();
      idle.pop_back();
      call.number = chaos.calls_;
      call.request.bytes = kBytes;
      std::memset(call.request.data, static_cast<int>(call.number), kBytes);
      std::memcpy(call.request.data, &call.number, sizeof call.number);
      thread.call(session, {kEcho, &call.request, &call.response, &end, this, call.number});
    }
  };

  void note(const char* what, std::vector<std::uint64_t> numbers) {
    events_ += what;
    for (const std::uint64_t number : numbers) events_ += " " + std::to_string(number);
    events_ += "\n";
  }

  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
  std::map<std::uint64_t, int> handled_, ended_;  // times, by call
  std::vector<std::uint64_t> answered_;
  std::string events_;
};

class ServiceScripts : public testing::TestWithParam<int> {};

TEST_P(ServiceScripts, EndEachCallOnceAndHandleNoneTwice) {
  std::size_t unanswered = 0;
  for (int i = 0; i < 20; ++i) {
    Chaos chaos(static_cast<std::uint64_t>(GetParam() * 20 + i));
    chaos.run();
    chaos.check();
    unanswered += chaos.unanswered();
    if (HasFailure()) break;
  }
  EXPECT_GT(unanswered, 20u) << "the faults have no effect";
}

INSTANTIATE_TEST_SUITE_P(Service, ServiceScripts, testing::Range(0, 10));

TEST(ServiceFaults, HaveTheSameRunForTheSameSeed) {
  for (const std::uint64_t seed : {3u, 4u}) {
    const std::string first = Chaos(seed).run();
    EXPECT_THAT(first, HasSubstr("fault"));
    EXPECT_EQ(Chaos(seed).run(), first);
    EXPECT_NE(Chaos(seed + 100).run(), first);
  }
}

}  // namespace
}  // namespace verbscope
