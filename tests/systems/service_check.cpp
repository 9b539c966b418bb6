// A service for tests with faults: clients check every byte, replace failed sessions, and count how calls end; the
// server logs each call that it handles.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/terminal.hpp"
#include "systems/service/service.hpp"

namespace verbscope {
namespace {

constexpr std::uint8_t kCheck = 7;
constexpr std::uint32_t kLeast = 8;  // bytes of a call: its number

void fill(std::byte* data, std::uint32_t bytes, std::uint64_t call) {
  for (std::uint32_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = call + at * 0x9e3779b97f4a7c15u;
    std::memcpy(data + at, &word, std::min<std::size_t>(8, bytes - at));
  }
}
bool good(const std::byte* data, std::uint32_t bytes, std::uint64_t call) {
  std::vector<std::byte> expected(bytes);
  fill(expected.data(), bytes, call);
  return std::memcmp(data, expected.data(), bytes) == 0;
}

class Check final : public Service {
 public:
  Description describe() const override { return {"service_check", "Checks calls under faults.", "--calls 100"}; }

  void options(OptionTable& table) override {
    table.integer("--calls", calls_, std::uint64_t{1}, std::uint64_t{1} << 40, "answers that a client waits for");
    table.bytes("-s,--size", size_, kLeast, 8u << 20, "bytes of a request");
    table.bytes("--response_size", response_size_, kLeast, 8u << 20, "bytes of a response");
    table.integer("--outstanding", outstanding_, 1u, 64u, "calls at a time");
    table.integer("--first", first_, std::uint64_t{1}, std::uint64_t{1} << 40, "number of the first call");
    table.text("--absent", absent_, "HOST:PORT", "a client opens a session there as well, where nobody listens");
    table.text("--log", log_, "a file", "the server appends the number of each call that it handles");
  }

  void serve(ServiceThread& thread) override {
    Server server{*this, thread};
    if (!log_.empty()) server.log.reset(std::fopen(log_.c_str(), "a"));
    thread.serve(kCheck, &Server::take, &server);
    while (thread.pass()) {
    }
    print_text(stdout, fmt::format("handled {} wrong {}\n", server.handled, server.wrong));
  }

  Json result() override {
    return {{"window_ops", answered_.load()}, {"ops", answered_.load()}, {"rate_mops", rate_mops_.load()}};
  }
  std::string summary(const Json& result) const override {
    return fmt::format("{} answered, {:.3f} Mops\n", result.at("ops").get<std::uint64_t>(),
                       result.at("rate_mops").get<double>());
  }

  void call(ServiceThread& thread) override {
    Client client{*this, thread, std::vector<Client::Call>(outstanding_), first_};
    for (Client::Call& call : client.calls) {
      call = {thread.allocate(size_), thread.allocate(response_size_)};
    }
    client.run();
    answered_ += client.answered;
    rate_mops_ = rate_mops_ + to_mops(Ops(client.answered), client.time);
    print_text(stdout, fmt::format("answered {} failed {} wrong {} again {} reconnected {} resent {}\n",
                                   client.answered, client.failed, client.wrong, client.again, client.reconnected,
                                   thread.counts().retransmitted));
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Server {
    Check& service;
    ServiceThread& thread;
    std::unique_ptr<std::FILE, Close> log{};
    std::uint64_t handled = 0, wrong = 0;

    static void take(void* self, const RpcRequest& request) { static_cast<Server*>(self)->answer(request); }
    void answer(const RpcRequest& request) {
      std::uint64_t call = 0;
      std::memcpy(&call, request.data, std::min<std::size_t>(sizeof call, request.bytes));
      ++handled;
      if (request.bytes != service.size_ || !good(request.data, request.bytes, call)) ++wrong;
      if (log) {
        std::fprintf(log.get(), "%llu\n", static_cast<unsigned long long>(call));
        std::fflush(log.get());  // also what a process that is killed has handled
      }
      MessageBuffer* const response = thread.response(request.handle, service.response_size_);
      if (response == nullptr) return;
      fill(response->data, response->bytes, ~call);
      thread.respond(request.handle);
    }
  };
  struct Client {
    struct Call {
      MessageBuffer request, response;
      std::uint64_t number = 0;
      bool open = false;
    };
    Check& service;
    ServiceThread& thread;
    std::vector<Call> calls;
    std::uint64_t next;
    std::uint16_t session = 0;
    Picos time{0};  // with a session
    std::uint64_t answered = 0, failed = 0, wrong = 0, again = 0, reconnected = 0;

    static void done(void* self, std::uint64_t index, RpcStatus status) {
      static_cast<Client*>(self)->end(index, status);
    }
    void end(std::uint64_t index, RpcStatus status) {
      Call& call = calls[index];
      if (!call.open) ++again;  // a second continuation
      call.open = false;
      if (status != RpcStatus::answered) {
        ++failed;
        return;
      }
      ++answered;
      if (call.response.bytes != service.response_size_ ||
          !good(call.response.data, call.response.bytes, ~call.number)) {
        ++wrong;
      }
    }
    bool outstanding() const {
      return std::ranges::any_of(calls, [](const Call& call) { return call.open; });
    }
    void run() {
      session = thread.connect(thread.server());
      std::optional<std::uint16_t> absent;
      if (!service.absent_.empty()) absent = thread.open(service.absent_);
      thread.begin_interval();
      const Picos begin = thread.now();
      while (answered < service.calls_ && thread.pass()) {
        if (thread.state(session) == SessionState::open) {
          send();
        } else if (!outstanding()) {
          thread.disconnect(session);
          session = thread.connect(thread.server());
          ++reconnected;
        }
      }
      while (outstanding() && thread.pass()) {
      }
      time = thread.now() - begin;
      thread.end_interval();
      if (absent) {
        const bool waits = thread.state(*absent) == SessionState::opening;
        while (thread.state(*absent) == SessionState::opening && thread.pass()) {
        }
        print_text(stdout, fmt::format("absent{}: {}\n", waits ? " after all calls" : "", thread.failure(*absent)));
      }
      thread.disconnect(session);
    }
    void send() {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        Call& call = calls[i];
        if (call.open || answered + i >= service.calls_) continue;
        call.number = next++;
        call.open = true;
        call.request.bytes = service.size_;
        fill(call.request.data, service.size_, call.number);
        thread.call(session, {kCheck, &call.request, &call.response, &done, this, i});
      }
    }
  };

  std::uint64_t calls_ = 100, first_ = 1;
  std::uint32_t size_ = 32, response_size_ = 32, outstanding_ = 4;
  std::string log_, absent_;
  std::atomic<std::uint64_t> answered_ = 0;  // of all clients of the process
  std::atomic<double> rate_mops_ = 0;
};

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::Check check;
  return verbscope::service_main(check, argc, argv);
}
