// Services on a simulated cluster: sessions are opened, refused and closed by the management.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/record.hpp"
#include "tests/systems/test_service.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST(Service, AnswersCallsOfSeveralClients) {
  TestService service;
  int answered = 0;
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    for (int i = 0; i < 5; ++i) answered += service.call_once(thread, session) == RpcStatus::answered ? 1 : 0;
  };
  EXPECT_EQ(service.run({"--clients=3"}), 0) << service.error;
  EXPECT_EQ(answered, 15);
}

TEST(Service, RefusesAnEndpointThatDoesNotExist) {
  TestService service;
  service.client = [](ServiceThread& thread) { thread.connect(thread.server(), 4); };
  EXPECT_EQ(service.run(), 1);
  EXPECT_THAT(service.error, HasSubstr("endpoint 4 of node0 opened no session: endpoint 4: this process has 1"));
}

TEST(Service, WaitsNoLongerThanTheTimeoutForASession) {
  TestService service;
  service.serves = false;
  service.client = [](ServiceThread& thread) { thread.connect(thread.server()); };
  EXPECT_EQ(service.run({"--timeout=2ms"}), 1);
  EXPECT_THAT(service.error, HasSubstr("endpoint 0 of node0 opened no session: waited 0.002 s"));
}

// 64 RECVs are enough for two sessions of 32 credits.
TEST(Service, RefusesSessionsBeyondTheReceivesAndTakesMoreWhenSomeAreClosed) {
  TestService service;
  service.client = [&](ServiceThread& thread) {
    for (int i = 0; i < 10; ++i) {
      const std::uint16_t session = thread.connect(thread.server());
      EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);
      thread.disconnect(session);
    }
    thread.connect(thread.server());
    thread.connect(thread.server());
    thread.connect(thread.server());
  };
  EXPECT_EQ(service.run({"--recvs=64"}), 1);
  EXPECT_THAT(service.error, HasSubstr("3 sessions: at most 2"));
}

TEST(Service, RunsSeveralServersThatCallEachOther) {
  TestService service;
  service.machines = 3;
  std::vector<std::uint32_t> served;
  int answered = 0;
  service.beside = [&](ServiceThread& thread) {
    served.push_back(thread.machine());
    EXPECT_THAT(thread.servers(), ElementsAre("node0", "node1", "node2"));
    for (std::uint32_t other = 0; other < 3; ++other) {
      if (other == thread.machine()) continue;
      const std::uint16_t session = thread.connect(thread.servers()[other]);
      answered += service.call_once(thread, session) == RpcStatus::answered ? 1 : 0;
    }
  };
  std::vector<std::uint32_t> called;
  service.client = [&](ServiceThread& thread) {
    called.push_back(thread.machine());
    for (const std::string& address : thread.servers()) {
      const std::uint16_t session = thread.connect(address);
      answered += service.call_once(thread, session) == RpcStatus::answered ? 1 : 0;
    }
  };
  EXPECT_EQ(service.run({"--clients=2"}), 0) << service.error;
  EXPECT_THAT(served, ElementsAre(0, 1, 2));
  EXPECT_THAT(called, ElementsAre(3, 4));
  EXPECT_EQ(answered, 3 * 2 + 2 * 3);
}

TEST(Service, OpensASessionWithoutWaitingForIt) {
  TestService service;
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.open(thread.server());
    EXPECT_EQ(thread.state(session), SessionState::opening);
    EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);  // the call waits
    EXPECT_EQ(thread.state(session), SessionState::open);
    EXPECT_EQ(thread.failure(session), "");
  };
  EXPECT_EQ(service.run(), 0) << service.error;
}

TEST(Service, EndsCallsOfASessionThatDoesNotOpen) {
  TestService service;
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t refused = thread.open(thread.server(), 7);
    EXPECT_EQ(service.call_once(thread, refused), RpcStatus::no_answer);
    EXPECT_EQ(thread.state(refused), SessionState::failed);
    EXPECT_EQ(thread.failure(refused), "endpoint 7: this process has 1");
    thread.disconnect(refused);
    EXPECT_EQ(service.call_once(thread, thread.connect(thread.server())), RpcStatus::answered);
    thread.open("nowhere");
  };
  EXPECT_EQ(service.run(), 1);
  EXPECT_THAT(service.error, HasSubstr("nowhere: expected"));
}

// The data of the request must outlive the new session.
// One call is on its way, others wait for a slot or until their session is open.
TEST(Service, CallsNoContinuationWhenItsThreadIsDone) {
  TestService service;
  int ended = 0;
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t open = thread.connect(thread.server()), opening = thread.open(thread.server());
    MessageBuffer request = thread.allocate(8), response = thread.allocate(8);
    request.bytes = 8;
    const RpcCall call{kEcho, &request, &response,
                       [](void* count, std::uint64_t, RpcStatus) { ++*static_cast<int*>(count); }, &ended};
    for (int i = 0; i < 20; ++i) thread.call(open, call);
    thread.call(opening, call);
  };
  EXPECT_EQ(service.run(), 0) << service.error;
  EXPECT_EQ(ended, 0);
}

TEST(Service, OpensSessionsInAHandler) {
  TestService service;
  service.machines = 2;
  std::vector<std::uint16_t> opened;
  service.before_answer = [&](const RpcRequest&) {
    for (int i = 0; i < 8; ++i) opened.push_back(service.server->open("node0"));
  };
  service.client = [&](ServiceThread& thread) {
    EXPECT_EQ(service.call_once(thread, thread.connect("node1")), RpcStatus::answered);
    for (const Picos later = thread.now() + std::chrono::milliseconds(1); thread.now() < later;) thread.pass();
    for (const std::uint16_t session : opened) EXPECT_EQ(service.server->state(session), SessionState::open);
  };
  EXPECT_EQ(service.run(), 0) << service.error;
  EXPECT_EQ(opened.size(), 8u);
}

TEST(Service, EndsAPassAtATimeThatAThreadAsksFor) {
  TestService service;
  service.client = [&](ServiceThread& thread) {
    for (const Picos wait : {Picos(700'000), Picos(3'000'000), Picos(11'000'000)}) {
      thread.wake_by(Picos(0));
      thread.pass();  // does not wait, so that now() is the present time
      const Picos time = thread.now() + wait;
      while (thread.now() < time) {
        thread.wake_by(time);
        thread.pass();
      }
      EXPECT_LT(thread.now() - time, Picos(300'000));  // a pass that finds nothing takes less
    }
  };
  EXPECT_EQ(service.run(), 0) << service.error;
}

TEST(Service, DrawsRandomNumbersFromTheSeed) {
  const auto draw = [](const char* seed) {
    TestService service;
    std::vector<std::uint64_t> numbers;
    const auto draw_three = [&](ServiceThread& thread) {
      for (int i = 0; i < 3; ++i) numbers.push_back(thread.random());
    };
    service.beside = service.client = draw_three;
    EXPECT_EQ(service.run({seed, "--clients=2", "--threads=2"}), 0) << service.error;
    return numbers;
  };
  const std::vector<std::uint64_t> numbers = draw("--seed=7");
  EXPECT_EQ(std::set(numbers.begin(), numbers.end()).size(), 3u * 2 * 3);
  EXPECT_EQ(draw("--seed=7"), numbers);
  EXPECT_NE(draw("--seed=8"), numbers);
}

// Between begin and end each client makes five calls, which are two messages each; before and after it makes others.
TEST(Service, WritesARecordWithTheCountersOfTheInterval) {
  const std::string file = testing::TempDir() + "/service_record.jsonl";
  std::filesystem::remove(file);
  TestService service;
  service.values = {{"window_ops", 10}, {"rate_mops", 1.5}};
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    const auto calls = [&](int count, Picos until) {
      for (int i = 0; i < count; ++i) EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);
      while (thread.now() < until && thread.pass()) thread.wake_by(until);
    };
    calls(7, std::chrono::milliseconds(3));
    thread.begin_interval();
    calls(5, std::chrono::milliseconds(4));
    thread.end_interval();
    calls(9, Picos(0));
  };
  EXPECT_EQ(service.run({"--clients=2", "--secret=hidden", "--out_json_file=" + file}), 0) << service.error;
  const Results results = read_results(file);
  ASSERT_THAT(results.records, SizeIs(1));
  const Record& record = results.records[0];
  EXPECT_EQ(record.benchmark, "test_service");
  EXPECT_EQ(record.status, RecordStatus::ok);
  EXPECT_EQ(record.config.at("clients"), 2);
  EXPECT_EQ(record.environment.at("fabric"), "sim:cx4");
  EXPECT_EQ(record.environment.at("simulated"), true);
  EXPECT_THAT(dump_json(to_json(record)), Not(HasSubstr("hidden")));
  EXPECT_EQ(record.result.at("rate_mops"), 1.5);
  EXPECT_NEAR(record.result.at("window_s").get<double>(), 1e-3, 1e-5);
  std::vector<std::string> nodes;
  std::vector<std::uint64_t> sent;
  for (const CounterReport& report : record.counters) {
    nodes.push_back(report.node);
    sent.push_back(report.extra.at("messages_sent").get<std::uint64_t>());
    EXPECT_EQ(report.window_s, record.result.at("window_s"));
  }
  EXPECT_THAT(nodes, ElementsAre("server", "client0", "client1"));
  EXPECT_THAT(sent, ElementsAre(10, 5, 5));
}

// More than four packets share a doorbell.
TEST(Service, PostsUpToFourPacketsOneByOne) {
  for (const std::size_t calls : {4, 5}) {
    const std::string file = testing::TempDir() + "/service_posts.jsonl";
    std::filesystem::remove(file);
    TestService service;
    service.client = [&](ServiceThread& thread) {
      const std::uint16_t session = thread.connect(thread.server());
      std::vector<MessageBuffer> requests, responses;
      for (std::size_t i = 0; i < calls; ++i) {
        requests.push_back(thread.allocate(100));
        requests[i].bytes = 100;
        responses.push_back(thread.allocate(100));
      }
      std::size_t over = 0;
      const Continuation done = [](void* count, std::uint64_t, RpcStatus) { ++*static_cast<std::size_t*>(count); };
      thread.begin_interval();
      for (std::size_t i = 0; i < calls; ++i) thread.call(session, {kEcho, &requests[i], &responses[i], done, &over});
      while (over < calls && thread.pass()) {
      }
      thread.end_interval();
    };
    EXPECT_EQ(service.run({"--out_json_file=" + file}), 0) << service.error;
    const Results results = read_results(file);
    ASSERT_THAT(results.records, SizeIs(1));
    EXPECT_EQ(results.records[0].counters.at(1).events.mmio_doorbells, calls > 4 ? 1u : 0u) << calls;
  }
}

TEST(Service, WritesARecordOfARunThatFails) {
  const std::string file = testing::TempDir() + "/failed_service_record.jsonl";
  std::filesystem::remove(file);
  TestService service;
  service.client = [](ServiceThread&) { fail("the client has a reason"); };
  EXPECT_EQ(service.run({"--out_json_file=" + file}), 1);
  const Results results = read_results(file);
  ASSERT_THAT(results.records, SizeIs(1));
  EXPECT_EQ(results.records[0].status, RecordStatus::failed);
  EXPECT_EQ(results.records[0].reason, "the client has a reason");
}

// A handler keeps the server for 250 ms, so that the second client asks three times for its session. With a second
// session it needs all RECVs of the server.
TEST(Service, OpensOneSessionForAClientThatAsksAgain) {
  TestService service;
  service.before_answer = [&](const RpcRequest&) { service.server->compute(std::chrono::milliseconds(250)); };
  int clients = 0;
  bool busy = false;
  service.client = [&](ServiceThread& thread) {
    if (clients++ == 0) {
      const std::uint16_t session = thread.connect(thread.server());
      busy = true;
      EXPECT_EQ(service.call_once(thread, session), RpcStatus::answered);
      return;
    }
    while (!busy && thread.pass()) {
    }
    for (const Picos later = thread.now() + std::chrono::microseconds(100); thread.now() < later;) thread.pass();
    const Picos begin = thread.now();
    thread.connect(thread.server());
    EXPECT_GT(thread.now() - begin, Picos(std::chrono::milliseconds(200)));
    thread.connect(thread.server());
  };
  EXPECT_EQ(service.run({"--clients=2", "--recvs=96", "--rto=400ms"}), 0) << service.error;
}

TEST(Service, EndsCallsOfASessionThatTheServerCloses) {
  TestService service;
  std::vector<RpcStatus> statuses;
  int requests = 0;
  service.before_answer = [&](const RpcRequest& request) {
    if (++requests == 2) service.server->disconnect(request.handle.session);
  };
  service.client = [&](ServiceThread& thread) {
    std::uint16_t session = thread.connect(thread.server());
    const Picos begin = thread.now();
    for (int i = 0; i < 3; ++i) statuses.push_back(service.call_once(thread, session));
    EXPECT_LT(thread.now() - begin, Picos(std::chrono::milliseconds(5))) << "time-outs ended the calls";
    EXPECT_EQ(thread.state(session), SessionState::failed);
    EXPECT_THAT(thread.failure(session), HasSubstr("the peer has closed the session"));
    thread.disconnect(session);
    session = thread.connect(thread.server());
    statuses.push_back(service.call_once(thread, session));
  };
  EXPECT_EQ(service.run(), 0) << service.error;
  EXPECT_THAT(statuses,
              ElementsAre(RpcStatus::answered, RpcStatus::no_answer, RpcStatus::no_answer, RpcStatus::answered));
}

TEST(Service, EndsCallsWhenTheServerNoLongerAnswers) {
  TestService service;
  std::vector<RpcStatus> statuses;
  service.client = [&](ServiceThread& thread) {
    const std::uint16_t session = thread.connect(thread.server());
    statuses.push_back(service.call_once(thread, session));
    const Picos begin = thread.now();
    service.server->serve(
        kEcho, [](void*, const RpcRequest&) {}, nullptr);  // takes requests and never answers
    statuses.push_back(service.call_once(thread, session));
    EXPECT_LE(thread.now() - begin, Picos(37'000'000'000));  // time-outs of 5, 10 and 20 ms, each noticed within 0.5 ms
  };
  EXPECT_EQ(service.run({"--most_timeouts=2"}), 0) << service.error;
  EXPECT_THAT(statuses, ElementsAre(RpcStatus::answered, RpcStatus::no_answer));
}

}  // namespace
}  // namespace verbscope
