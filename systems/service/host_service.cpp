#include <pthread.h>

#include <array>
#include <charconv>
#include <csignal>
#include <ctime>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "common/error.hpp"
#include "common/record.hpp"
#include "machine/threads.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/thread_group.hpp"
#include "systems/service/runs.hpp"
#include "verbs/host_provider.hpp"

namespace verbscope {

namespace {

// While it lives, SIGINT and SIGTERM stop the threads of the service instead of ending the process. Construct it before
// other threads are started.
class StopSignals {
 public:
  explicit StopSignals(Management& management) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    check_errno("block the signals that stop", pthread_sigmask(SIG_BLOCK, &signals_, nullptr));
    waiter_ = std::jthread([this, &management](const std::stop_token& stop) {
      constexpr timespec kStopCheck{0, 50'000'000};
      while (!stop.stop_requested()) {
        if (sigtimedwait(&signals_, nullptr, &kStopCheck) > 0) management.stop();
      }
    });
  }

 private:
  sigset_t signals_{};
  std::jthread waiter_;
};

class TcpLinks final : public PeerLinks {
 public:
  TcpLinks(Management& management, const ServiceOptions& options)
      : options_(options),
        nexus_(management, terms_of(options), exchange_secret(options.secret),
               options.servers.empty() ? std::optional(static_cast<int>(options.port)) : std::nullopt) {
    management.set_links(*this);
  }

  PeerId connect(const std::string& address) override {
    const std::size_t colon = address.rfind(':');
    int port = static_cast<int>(options_.port);
    if (colon == std::string::npos) return nexus_.connect(address, port, options_.timeout);
    const char* const end = address.data() + address.size();
    const auto [read, error] = std::from_chars(address.data() + colon + 1, end, port);
    if (error != std::errc() || read != end) fail("{}: expected HOST or HOST:PORT", address);
    return nexus_.connect(address.substr(0, colon), port, options_.timeout);
  }
  void send(PeerId peer, const Message& message) override { nexus_.send(peer, message); }

 private:
  static Terms terms_of(const ServiceOptions& options) {
    const BuildInfo build = build_info();
    return {options.name, build.version, build.git_revision, false,
            Json{{"packet_size", options.packet_bytes}, {"credits", options.rpc.credits}}};
  }

  const ServiceOptions& options_;
  Nexus nexus_;
};

}  // namespace

Outcome run_on_host(Service& service, const ServiceOptions& options) {
  Management management(options.threads);
  const StopSignals signals(management);
  HostProvider provider;
  const ServiceDevice device(provider, options);
  HostNode node;
  ServiceInterval interval([] {}, [] {});
  std::random_device random;
  std::optional<ServiceWorkers> workers;
  if (options.workers > 0 && options.servers.empty()) workers.emplace(options);
  const std::uint32_t worker_count = workers ? options.workers : 0;
  std::deque<ServiceThreadOn<HostNode>> threads;
  for (std::uint32_t t = 0; t < options.threads; ++t) {
    const std::uint64_t seed = std::uint64_t{random()} << 32 | random();
    threads.emplace_back(ServicePlace{device, options, management, interval, workers ? &*workers : nullptr, 0, t, seed},
                         node);
  }
  const TcpLinks links(management, options);
  const RunCores cores(parse_cores(options.cores), options.threads + worker_count);
  if (cores.threads().size() < options.threads + worker_count) {
    fail_usage("--threads {}, --workers {}: {} cores", options.threads, worker_count, cores.threads().size());
  }
  const Picos begin = node.now();
  std::vector<PinnedThread> working;
  for (std::uint32_t w = 0; w < worker_count; ++w) {
    working.emplace_back(cores.threads().at(options.threads + w), [&workers, &node, w](const std::stop_token& stop) {
      workers->run(node, w, [&stop] { return stop.stop_requested(); });
    });
  }
  std::vector<PinnedThread> running;
  for (std::uint32_t t = 0; t < options.threads; ++t) {
    running.emplace_back(cores.threads().at(t), [&service, &options, &thread = threads[t]](const std::stop_token&) {
      options.servers.empty() ? service.serve(thread) : service.call(thread);
      thread.finish();
    });
  }
  for (PinnedThread& thread : running) thread.join();
  working.clear();
  Outcome outcome;
  outcome.result["window_s"] = to_seconds(interval.length().value_or(node.now() - begin));
  outcome.result.update(service.result());
  outcome.environment["device"] = device.device.name();
  return outcome;
}

}  // namespace verbscope
