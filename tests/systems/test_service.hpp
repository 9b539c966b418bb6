// A service for tests on a simulated cluster: its servers echo, or do what a test says.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "systems/service/service.hpp"

namespace verbscope {

inline constexpr std::uint8_t kEcho = 1;

// Passes for `time` of virtual time.
inline void wait(ServiceThread& thread, Picos time) {
  thread.wake_by(Picos(0));
  thread.pass();
  for (const Picos end = thread.now() + time; thread.now() < end && thread.pass();) thread.wake_by(end);
}

class TestService final : public Service {
 public:
  Description describe() const override { return {"test_service", "For tests.", ""}; }
  std::uint32_t servers() const override { return machines; }
  void serve(ServiceThread& thread) override {
    server = &thread;
    Server own{*this, thread};
    thread.serve(kEcho, &Server::answer, &own);
    if (beside) beside(thread);
    while (serves && thread.pass()) {
    }
  }
  void call(ServiceThread& thread) override { client(thread); }
  void script(SimFaults& of) override {
    if (faults) faults(of);
  }

  Json result() override { return values; }

  struct Server {
    TestService& service;
    ServiceThread& thread;

    static void answer(void* self, const RpcRequest& request) {
      const auto& [service, thread] = *static_cast<Server*>(self);
      if (service.before_answer) service.before_answer(request);
      MessageBuffer* const response = thread.response(request.handle, request.bytes);
      if (response == nullptr) return;
      std::memcpy(response->data, request.data, request.bytes);
      thread.respond(request.handle);
    }
  };

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

  std::uint32_t machines = 1;  // that serve
  std::function<void(ServiceThread&)> client;
  std::function<void(ServiceThread&)> beside;  // what a server does before its loop
  std::function<void(const RpcRequest&)> before_answer;
  std::function<void(SimFaults&)> faults;
  Json values = Json::object();  // the result
  bool serves = true;
  ServiceThread* server = nullptr;  // the last one that started
  std::string error;
};

}  // namespace verbscope
