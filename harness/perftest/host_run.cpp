#include <chrono>
#include <exception>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/record.hpp"
#include "exchange/exchange.hpp"
#include "harness/perftest/output.hpp"
#include "harness/perftest/runs.hpp"
#include "harness/process/child.hpp"
#include "machine/threads.hpp"
#include "microbench/bench/options.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{10};

// True if a program of this machine listens on the TCP port: state 0A in the kernel's table.
bool listens(int port) {
  const std::string wanted = fmt::format(":{:04X}", port);
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string number, local, remote, state;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (words >> number >> local >> remote >> state && local.ends_with(wanted) && state == "0A") return true;
    }
  }
  return false;
}

// The program of perftest of this side, on a core of its own.
class Perftest {
 public:
  Perftest(const PerftestOptions& options, const std::vector<std::string>& more)
      : options_(options),
        affinity_(claims_.claim_free(usable_cores(options), 1).cores),
        child_(
            command_of(options, more), [this](std::string_view chunk) { output_.text += chunk; }, {}, Fd(),
            [this](std::string_view chunk) { output_.errors += chunk; }) {}

  // Waits until the server listens on the port.
  void await_listening(int port) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(*options_.timeout);
    while (!listens(port)) {
      if (wait_for_end(child_, Clock::now() + kBetweenLooks, nullptr) == WaitEnd::satisfied) fail_with_reason();
      if (Clock::now() >= end) {
        fail("{}: not listening on port {} after {:g} s", options_.tool, port, to_seconds(*options_.timeout));
      }
    }
  }

  // Waits until it has ended, then sends the peer its output. Returns both outputs, the client's first. A peer that
  // gives up ends the wait.
  std::vector<PerftestOutput> exchange_outputs(Channel& peer) {
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(*options_.time_limit);
    std::optional<Json> theirs;
    while (true) {
      StopSource message(peer.fd());
      const WaitEnd end = wait_for_end(child_, deadline, theirs ? nullptr : &message);
      if (end == WaitEnd::satisfied) break;
      if (end == WaitEnd::timeout) {
        fail("{}: not finished after {:g} s (--time_limit)", options_.tool, to_seconds(*options_.time_limit));
      }
      theirs = peer.receive("output", *options_.timeout);
    }
    if (!child_.succeeded()) fail_with_reason();
    peer.send("output", Json{{"text", output_.text}, {"errors", output_.errors}}, *options_.timeout);
    if (!theirs) theirs = peer.receive("output", *options_.time_limit);
    JsonFields fields(*theirs, "message output");
    const PerftestOutput other{.text = fields.require<std::string>("text"),
                               .errors = fields.require<std::string>("errors")};
    return options_.host.empty() ? std::vector{other, output_} : std::vector{output_, other};
  }

 private:
  static std::vector<int> usable_cores(const PerftestOptions& options) {
    const std::vector<int> named = parse_cores(options.cores);
    for (const int core : named) check_core(core);
    return named.empty() ? allowed_cores() : named;
  }

  static std::vector<std::string> command_of(const PerftestOptions& options, const std::vector<std::string>& more) {
    std::vector<std::string> command = perftest_command(options);
    command.front() = find_program(command.front());
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  [[noreturn]] void fail_with_reason() const {
    fail("{}", failure_text(options_.tool + ": " + child_.end_text(), child_.tail()));
  }

  const PerftestOptions& options_;
  CoreClaims claims_;
  ScopedAffinity affinity_;  // the child inherits it
  PerftestOutput output_;
  Child child_;
};

// Tells the peer the reason of a failure here.
template <class Body>
std::vector<PerftestOutput> with_peer(Channel peer, Body&& body) {
  try {
    return body(peer);
  } catch (const std::exception& error) {
    peer.send_failure(error.what());
    throw;
  }
}

std::vector<PerftestOutput> serve(const PerftestOptions& options, const Terms& terms) {
  // If another program takes the port before perftest does, perftest reports that.
  const int port = local_port(tcp_listen("", 0));
  Perftest server(options, {"-p", std::to_string(port)});
  server.await_listening(port);
  ExchangeServer exchange(static_cast<int>(options.port), terms, exchange_secret(options.secret), options.listen);
  exchange.announce();
  return with_peer(std::move(exchange.accept(1, *options.timeout).front()), [&](Channel& client) {
    client.send("listening", Json{{"port", port}}, *options.timeout);
    return server.exchange_outputs(client);
  });
}

std::vector<PerftestOutput> call(const PerftestOptions& options, const Terms& terms) {
  return with_peer(connect_exchange(options.host, static_cast<int>(options.port), terms,
                                    exchange_secret(options.secret), *options.timeout),
                   [&](Channel& server) {
                     const Json listening = server.receive("listening", *options.timeout);
                     const int port = JsonFields(listening, "message listening").require<int>("port", 1, 65535);
                     return Perftest(options, {"-p", std::to_string(port), options.host}).exchange_outputs(server);
                   });
}

}  // namespace

Outcome run_perftest_on_host(const PerftestOptions& options, const Json& parameters) {
  const BuildInfo build = build_info();
  const Terms terms{"perftest", build.version, build.git_revision, false, parameters};
  Outcome outcome;
  add_figures(options.tool, options.host.empty() ? serve(options, terms) : call(options, terms), outcome);
  return outcome;
}

}  // namespace verbscope
