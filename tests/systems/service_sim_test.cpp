// Services on a simulated cluster: sessions are opened, refused and closed by the management.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "systems/service/service.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint8_t kEcho = 1;

// Echoes, or does what a test says.
class TestService final : public Service {
 public:
  Description describe() const override { return {"test_service", "For tests.", ""}; }
  void serve(ServiceThread& thread) override {
    server = &thread;
    thread.serve(kEcho, &answer, this);
    if (serves) {
      while (thread.pass()) {
      }
    }
  }
  void call(ServiceThread& thread) override { client(thread); }

  static void answer(void* self, const RpcRequest& request) {
    TestService& service = *static_cast<TestService*>(self);
    if (service.before_answer) service.before_answer(request);
    MessageBuffer* const response = service.server->response(request.handle, request.bytes);
    if (response == nullptr) return;
    std::memcpy(response->data, request.data, request.bytes);
    service.server->respond(request.handle);
  }

  // Calls once and waits for the end.
  RpcStatus call_once(ServiceThread& thread, std::uint16_t session) {
    MessageBuffer request = thread.allocate(100), response = thread.allocate(100);
    request.bytes = 100;
    std::memset(request.data, 7, 100);
    struct End {
      bool over = false;
      RpcStatus status{};
    } end;
    const Continuation done = [](void* context, std::uint64_t, RpcStatus status) {
      *static_cast<End*>(context) = {true, status};
    };
    thread.call(session, {kEcho, &request, &response, done, &end});
    while (!end.over && thread.pass()) {
    }
    EXPECT_TRUE(end.over);
    if (end.status == RpcStatus::answered) {
      EXPECT_EQ(response.bytes, 100u);
      EXPECT_EQ(std::memcmp(request.data, response.data, 100), 0);
    }
    thread.free(request);
    thread.free(response);
    return end.status;
  }

  int run(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"test_service", "--fabric=sim:cx4"});
    std::vector<char*> words;
    for (std::string& option : options) words.push_back(option.data());
    words.push_back(nullptr);
    testing::internal::CaptureStderr();
    const int code = service_main(*this, static_cast<int>(options.size()), words.data());
    error = testing::internal::GetCapturedStderr();
    return code;
  }

  std::function<void(ServiceThread&)> client;
  std::function<void(const RpcRequest&)> before_answer;
  bool serves = true;
  ServiceThread* server = nullptr;
  std::string error;
};

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
  EXPECT_THAT(service.error, HasSubstr("endpoint 4 of server opened no session: endpoint 4: this process has 1"));
}

TEST(Service, WaitsNoLongerThanTheTimeoutForASession) {
  TestService service;
  service.serves = false;
  service.client = [](ServiceThread& thread) { thread.connect(thread.server()); };
  EXPECT_EQ(service.run({"--timeout=2ms"}), 1);
  EXPECT_THAT(service.error, HasSubstr("waited 0.002 s for endpoint 0 of server to open a session"));
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
    EXPECT_FALSE(thread.is_open(session));
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
    EXPECT_LE(thread.now() - begin, Picos(20'000'000'000));  // 3 time-outs of 5 ms, each noticed within 0.5 ms
  };
  EXPECT_EQ(service.run({"--most_timeouts=2"}), 0) << service.error;
  EXPECT_THAT(statuses, ElementsAre(RpcStatus::answered, RpcStatus::no_answer));
}

}  // namespace
}  // namespace verbscope
