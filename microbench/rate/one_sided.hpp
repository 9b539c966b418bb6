// The base of the benchmarks of WRITEs and READs: the options, who posts, the region that is worked on. SENDs go the
// same way where a benchmark offers them beside.
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
  // Refuses a validation that would check nothing, and windows that cannot be kept. Classes that have an adjust of
  // their own call it.
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

  // Each registers some of the options.
  void add_direction(OptionTable& table);
  void add_bidirectional(OptionTable& table);
  void add_immediate(OptionTable& table);
  void add_outstanding(OptionTable& table);
  void add_order(OptionTable& table);
  void add_seen_by(OptionTable& table);
  void add_region(OptionTable& table);
  void add_region(OptionTable& table, const std::string& size_help);
  void add_verb(OptionTable& table, bool with_send);

  bool posts(Side side) const { return everybody_ || side == driver_; }

  Verb verb_;
  Side driver_ = Side::server;
  bool everybody_ = false;  // both sides post, and the rate is the driver's, or
  bool both_ways_ = false;  // that of both
  bool immediate_ = false;  // WRITEs bring one
  bool random_turns_ = false;
  // Operations on each QP, 0: as many as --tx_depth; or where a thread has one window over its QPs, in that.
  std::uint32_t outstanding_ = 0;
  WaitFor wait_ = WaitFor::any;
  SeenBy seen_by_ = SeenBy::completion;
  bool cq_per_qp_ = false;
  std::uint32_t threads_per_qp_ = 1;
  bool by_cq_mod_ = false;                // a thread has no window: only --cq_mod bounds what it has outstanding
  std::uint64_t region_size_ = 64 << 10;  // bytes
  std::uint32_t region_shares_ = 1;       // each of --region_size, one for each thread of the peers
  bool huge_pages_ = false;               // of the region
  Addresses addresses_ = Addresses::sequential;

 private:
  void check_immediate(const Options& options) const;
  void check_window(Options& options) const;
  void check_memory(const Options& options) const;
  void check_sharing(const Options& options) const;

  std::uint64_t alignment_ = 0;  // bytes; 0: places lie side by side
};

// One verb, outbound (the server posts, the clients' memory is worked on) or inbound (the other way round). The rate is
// that of the completions where they are posted.
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
