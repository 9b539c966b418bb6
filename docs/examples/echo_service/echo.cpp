// An echo service: the server returns what it receives, and the clients compare.
#include <cstdio>
#include <cstring>

#include "systems/service/service.hpp"

using namespace verbscope;

namespace {

constexpr std::uint8_t kEcho = 1;  // a type of request

// Called for each request of this type. `context` is the last argument of serve() below.
void answer(void* context, const RpcRequest& request) {
  ServiceThread& thread = *static_cast<ServiceThread*>(context);
  MessageBuffer* const response = thread.response(request.handle, request.bytes);
  if (response == nullptr) return;  // the client has closed the session
  std::memcpy(response->data, request.data, request.bytes);
  thread.respond(request.handle);
}

// Called once for each call: it has its response, or the session has failed.
void finish(void* context, std::uint64_t, RpcStatus status) {
  *static_cast<RpcStatus*>(context) = status;
}

class Echo final : public Service {
 public:
  Description describe() const override { return {"echo", "Returns what it receives.", "--calls 1000"}; }

  void options(OptionTable& table) override {
    table.integer("--calls", calls_, 1u, 1u << 30, "calls of each client");
    table.bytes("-s,--size", size_, 1u, 1u << 20, "bytes of a call");
  }

  void serve(ServiceThread& thread) override {
    thread.serve(kEcho, &answer, &thread);
    while (thread.pass()) {
    }
  }

  void call(ServiceThread& thread) override {
    const std::uint16_t session = thread.connect(thread.server());
    MessageBuffer request = thread.allocate(size_), response = thread.allocate(size_);
    request.bytes = size_;
    const Picos begin = thread.now();
    for (std::uint32_t i = 0; i < calls_; ++i) {
      std::memset(request.data, static_cast<int>(i), size_);
      RpcStatus status = kPending;
      thread.call(session, {kEcho, &request, &response, &finish, &status});
      while (status == kPending && thread.pass()) {
      }
      if (status != RpcStatus::answered) fail("call {} of {} has no answer", i + 1, calls_);
      if (response.bytes != size_ || std::memcmp(response.data, request.data, size_) != 0)
        fail("call {} differs", i + 1);
    }
    std::printf("%u calls, %.2f us each\n", calls_, to_seconds(thread.now() - begin) * 1e6 / calls_);
    thread.disconnect(session);
  }

 private:
  static constexpr auto kPending = static_cast<RpcStatus>(0xff);
  std::uint32_t calls_ = 1000;
  std::uint32_t size_ = 32;
};

}  // namespace

int main(int argc, char** argv) {
  Echo echo;
  return service_main(echo, argc, argv);
}
