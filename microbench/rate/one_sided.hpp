// The base of the benchmarks of WRITEs and READs: options, posting sides, and the target region. Some of them also
// offer SENDs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/bench/region.hpp"
#include "microbench/loop/window_sender.hpp"

namespace verbscope {

class OneSided : public Benchmark {
 public:
  // Checks --validate, --window and the options around them. A derived class with its own adjust calls this one.
  void adjust(Options& options) override;
  Plan draft() const override;
  QueueNeeds needs(const Operation& operation, Side side) const override;
  RegionNeeds region(const Operation& operation, Side side, std::uint32_t qps) const override;
  void fill(const Operation& operation, Side side, std::span<std::byte> region) const override;
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override;
  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override;
  Prediction predict_run(const ClusterWire& cluster, const Operation& operation, int ports,
                         const Json& result) const override;

 protected:
  explicit OneSided(Verb verb) : verb_(verb) {}

  // Each registers one group of options.
  void add_direction(OptionTable& table);
  void add_bidirectional(OptionTable& table);
  void add_immediate(OptionTable& table);
  void add_outstanding(OptionTable& table);
  void add_order(OptionTable& table);
  void add_seen_by(OptionTable& table);
  void add_region(OptionTable& table);
  void add_region(OptionTable& table, const std::string& size_help);
  void add_verb(OptionTable& table, bool with_send);

  bool posts(Side side) const { return both_sides_ || side == driver_; }

  Verb verb_;
  Side driver_ = Side::server;
  bool both_sides_ = false;  // both sides post, and the driver's operations make the rate
  bool both_ways_ = false;   // both sides post, and the operations of both make the rate
  bool immediate_ = false;   // WRITEs with an immediate
  bool random_turns_ = false;
  // Outstanding operations: per QP with --wait any (0: --tx_depth), else per thread.
  std::uint32_t outstanding_ = 0;
  WaitFor wait_ = WaitFor::any;
  SeenBy seen_by_ = SeenBy::completion;
  bool cq_per_qp_ = false;
  std::uint32_t threads_per_qp_ = 1;
  bool by_cq_mod_ = false;                // only --cq_mod limits the outstanding operations
  std::uint64_t region_size_ = 64 << 10;  // bytes
  std::uint32_t region_shares_ = 1;       // parts of --region_size bytes, one per thread of the peers
  bool huge_pages_ = false;               // of the region
  Addresses addresses_ = Addresses::sequential;

 private:
  void check_immediate(const Options& options) const;
  void check_window(Options& options) const;
  void check_memory(const Options& options) const;
  void check_sharing(const Options& options) const;

  std::uint64_t alignment_ = 0;  // bytes; 0: adjacent places
};

// One verb, outbound (the server posts, the clients are targets) or inbound (the other way round). The rate is that of
// the completions at the side that posts.
class OneSidedRate final : public OneSided {
 public:
  OneSidedRate(Verb verb, Description description) : OneSided(verb), description_(std::move(description)) {}

  Description describe() const override { return description_; }

  void options(OptionTable& table) override {
    offer_transports(table, {verb_});
    add_direction(table);
    add_bidirectional(table);
    if (verb_ == Verb::write) add_immediate(table);
    add_outstanding(table);
    add_order(table);
    add_region(table);
    add_all_sizes(table, all_);
  }

  std::vector<std::uint32_t> points(const Options& options) const override {
    return all_ ? all_sizes(options) : std::vector<std::uint32_t>();
  }

 private:
  Description description_;
  bool all_ = false;
};

}  // namespace verbscope
