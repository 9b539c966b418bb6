// Services on a simulated cluster whose slow requests are handled by workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/systems/test_service.hpp"

namespace verbscope {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::uint8_t kSlow = 2;
constexpr std::uint32_t kMostSlow = 3000;  // bytes of a response

// Its server has slow requests, which take `time` and are answered by their own bytes, up to kMostSlow.
struct SlowService {
  explicit SlowService(Picos time) : slow_time(time) {
    service.beside = [this](ServiceThread& thread) {
      thread.serve_by_worker(kSlow, &SlowService::answer, this, kMostSlow);
    };
  }

  static void answer(void* self, ServiceWork& work) noexcept {
    auto& slow = *static_cast<SlowService*>(self);
    std::uint64_t number = 0;
    std::memcpy(&number, work.request.data, sizeof number);
    ++slow.handled[number];
    work.computing = slow.slow_time;
    work.response.bytes = std::min(work.request.bytes, kMostSlow);
    std::memcpy(work.response.data, work.request.data, work.response.bytes);
  }

  // A call of a slow request, whose first word is its number.
  struct Call {
    Call(ServiceThread& of, std::uint16_t session, std::uint64_t number, std::uint32_t bytes = 100)
        : thread(of), request(of.allocate(bytes)), response(of.allocate(kMostSlow)) {
      request.bytes = bytes;
      for (std::uint32_t i = 0; i < bytes; ++i) request.data[i] = static_cast<std::byte>(number * 31 + i * 7);
      std::memcpy(request.data, &number, sizeof number);
      thread.call(session, {kSlow, &request, &response, &Call::done, this});
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    static void done(void* self, std::uint64_t, RpcStatus status) {
      Call& call = *static_cast<Call*>(self);
      ++call.over;
      call.status = status;
      call.ended = call.thread.now();
      if (status != RpcStatus::answered) return;
      EXPECT_EQ(call.response.bytes, std::min(call.request.bytes, kMostSlow));
      EXPECT_EQ(std::memcmp(call.response.data, call.request.data, call.response.bytes), 0);
    }
    void wait() {
      while (over == 0 && thread.pass()) {
      }
    }
    ServiceThread& thread;
    MessageBuffer request, response;
    int over = 0;
    RpcStatus status{};
    Picos ended{0};
  };

  TestService service;
  Picos slow_time;
  std::map<std::uint64_t, int> handled;  // times, by number
};

struct Latencies {
  Picos slow{0}, quick{0};
};
// A slow call, and a quick one right behind it. With the calls before them, the server registers its memory.
Latencies measure(const std::string& option) {
  SlowService slow(microseconds(200));
  Latencies latencies;
  slow.service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    for (const std::uint64_t number : {1u, 2u}) {
      wait(thread, microseconds(10));
      const Picos begin = thread.now();
      SlowService::Call call(thread, session, number);
      EXPECT_EQ(slow.service.call_once(thread, session), RpcStatus::answered);
      latencies.quick = thread.now() - begin;
      call.wait();
      EXPECT_EQ(call.status, RpcStatus::answered);
      latencies.slow = call.ended - begin;
    }
  };
  EXPECT_EQ(slow.service.run({option}), 0) << slow.service.error;
  EXPECT_EQ(slow.handled, (std::map<std::uint64_t, int>{{1, 1}, {2, 1}}));
  return latencies;
}

// A round trip takes less than 10 us.
TEST(ServiceWorkers, SlowRequestsDelayQuickOnesOnlyWithoutAWorker) {
  const Latencies without = measure("--workers=0");
  EXPECT_GE(without.slow, Picos(microseconds(200)));
  EXPECT_GE(without.quick, Picos(microseconds(200)));
  const Latencies with = measure("--workers=1");
  EXPECT_GE(with.slow, Picos(microseconds(200)));
  EXPECT_LE(with.slow, Picos(microseconds(210)));
  EXPECT_LE(with.quick, Picos(microseconds(10)));
}

// 16 calls of 100 us: a worker handles one after the other, four of them handle at least four.
TEST(ServiceWorkers, WorkAtTheSameTime) {
  const auto run = [](const std::string& option) {
    SlowService slow(microseconds(100));
    Picos time{0};
    slow.service.client = [&](ServiceThread& thread) {
      const std::vector<std::uint16_t> sessions{thread.connect(thread.server()), thread.connect(thread.server())};
      for (const std::uint64_t round : {0u, 16u}) {  // in the first one, the server registers its memory
        std::vector<std::unique_ptr<SlowService::Call>> calls;
        const Picos begin = thread.now();
        for (std::uint32_t i = 0; i < 16; ++i) {
          calls.push_back(std::make_unique<SlowService::Call>(thread, sessions[i % 2], round + i, 100 + 300 * i));
        }
        for (const auto& call : calls) {
          call->wait();
          EXPECT_EQ(call->status, RpcStatus::answered);
        }
        time = thread.now() - begin;
      }
    };
    EXPECT_EQ(slow.service.run({option}), 0) << slow.service.error;
    EXPECT_EQ(slow.handled.size(), 32u);
    for (const auto& [number, times] : slow.handled) EXPECT_EQ(times, 1) << number;
    return time;
  };
  const Picos one = run("--workers=1"), four = run("--workers=4");
  EXPECT_GE(one, Picos(microseconds(1600)));
  EXPECT_LE(one, Picos(microseconds(1650)));
  EXPECT_GE(four, Picos(microseconds(400)));
  EXPECT_LE(four, Picos(microseconds(1200)));
}

// The server has RECVs for one session. Its end of the closed one stays until the worker is done.
TEST(ServiceWorkers, ASessionIsClosedWhileAWorkerHasItsRequest) {
  SlowService slow(milliseconds(1));
  slow.service.client = [&](ServiceThread& thread) {
    std::uint16_t session = thread.connect(thread.server());
    SlowService::Call lost(thread, session, 1);
    wait(thread, microseconds(100));
    EXPECT_EQ(slow.handled[1], 1);
    thread.disconnect(session);
    wait(thread, microseconds(100));
    EXPECT_EQ(lost.over, 1);
    EXPECT_EQ(lost.status, RpcStatus::no_answer);
    session = thread.open(thread.server());
    while (thread.state(session) == SessionState::opening && thread.pass()) {
    }
    EXPECT_THAT(thread.failure(session), HasSubstr("at most 1"));
    thread.disconnect(session);
    wait(thread, milliseconds(1));
    session = thread.connect(thread.server());
    SlowService::Call call(thread, session, 2);
    call.wait();
    EXPECT_EQ(call.status, RpcStatus::answered);
    EXPECT_EQ(lost.over, 1);
  };
  EXPECT_EQ(slow.service.run({"--workers=1", "--recvs=32"}), 0) << slow.service.error;
  EXPECT_EQ(slow.handled, (std::map<std::uint64_t, int>{{1, 1}, {2, 1}}));
}

// The client is done while the worker works for 5 ms. Meanwhile the objects of serve() stay.
TEST(ServiceWorkers, AServerEndsWhenItsWorkersAreDone) {
  SlowService slow(milliseconds(5));
  slow.service.serves = false;
  Picos ended{0};
  slow.service.beside = [&, serve = slow.service.beside](ServiceThread& thread) {
    serve(thread);
    while (thread.pass()) {
    }
    ended = thread.now();
  };
  Picos begun{0};
  slow.service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    SlowService::Call call(thread, session, 1);
    wait(thread, microseconds(100));
    begun = thread.now();
    thread.disconnect(session);
    call.wait();
  };
  EXPECT_EQ(slow.service.run({"--workers=1"}), 0) << slow.service.error;
  EXPECT_EQ(slow.handled[1], 1);
  EXPECT_GE(ended, begun + milliseconds(4));
  EXPECT_LE(ended, begun + milliseconds(6));
}

// Killed while its worker has a request, the server does not answer. The next process has workers of its own.
TEST(ServiceWorkers, AServerIsKilledWhileAWorkerHasARequest) {
  SlowService slow(milliseconds(1));
  slow.service.faults = [](SimFaults& faults) {
    faults.wait_until(milliseconds(2));
    faults.kill(0);
    faults.wait_until(milliseconds(3));
    faults.restart(0);
  };
  slow.service.client = [&](ServiceThread& thread) {
    std::uint16_t session = thread.connect(thread.server());
    wait(thread, Picos(microseconds(1500)) - thread.now());
    SlowService::Call lost(thread, session, 1);
    lost.wait();
    EXPECT_EQ(lost.status, RpcStatus::no_answer);
    EXPECT_LE(lost.ended, Picos(microseconds(2100)));
    thread.disconnect(session);
    session = thread.connect(thread.server());
    SlowService::Call call(thread, session, 2);
    call.wait();
    EXPECT_EQ(call.status, RpcStatus::answered);
  };
  EXPECT_EQ(slow.service.run({"--workers=2"}), 0) << slow.service.error;
  EXPECT_EQ(slow.handled, (std::map<std::uint64_t, int>{{1, 1}, {2, 1}}));
}

TEST(ServiceWorkers, RefusesMoreThanAMachineHasCores) {
  SlowService slow(milliseconds(1));
  slow.service.client = [](ServiceThread&) {};
  EXPECT_EQ(slow.service.run({"--workers=200"}), 1);
  EXPECT_THAT(slow.service.error, HasSubstr("a node of cx4 has cores 0 to"));
}

}  // namespace
}  // namespace verbscope
