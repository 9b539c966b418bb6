// The benchmarks of RPCs whose handlers do nothing, or take a declared time: rpc_rate, rpc_large and rpc_incast.
#pragma once

#include <optional>
#include <vector>

#include "systems/rpc_rate/echo_work.hpp"
#include "systems/rpc_rate/rpc_benchmark.hpp"

namespace verbscope {

inline constexpr std::uint32_t kLargeRequest = 8'000'000;  // bytes

// Machines that serve: all, which also call each other; machine 0, which the others call; or only the played peers of
// the null device.
enum class RpcServing : std::uint8_t { all, server, peers };

// How a program differs from the others.
struct RpcDefaults {
  Description description;
  bool incast = false;  // only the server serves, and there may be RPCs in the background
  std::uint32_t machines = 2;
  std::uint32_t request_bytes = 32;
  std::optional<std::uint32_t> response_bytes{};  // none: as many as the request has
  RpcLoad load{};
};

class EchoBenchmark final : public RpcBenchmark {
 public:
  explicit EchoBenchmark(const RpcDefaults& defaults);

  Description describe() const override { return defaults_.description; }
  void options(OptionTable& table) override;
  void adjust(Options& options) override;
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return make_thread<EchoWork>(setup, work_);
  }

 private:
  std::vector<LatencyKinds> latency_kinds() const override;

  void add_load_options(OptionTable& table);
  void add_handler_options(OptionTable& table);
  void settle_messages(Options& o);
  void settle_machines(Options& o);
  void settle_played(const Options& o);
  void settle_handlers(Options& o);

  const RpcDefaults defaults_;
  RpcServing serving_;
  EchoWork::Options work_;
  std::optional<std::uint32_t> response_bytes_, background_bytes_, workers_, slow_percent_;
  bool by_workers_ = false;
  std::uint32_t handler_ns_ = 0;
};

}  // namespace verbscope
