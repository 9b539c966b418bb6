// Services on a simulated cluster whose machines are killed, started again, cut off, paused and slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>

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

}  // namespace
}  // namespace verbscope
