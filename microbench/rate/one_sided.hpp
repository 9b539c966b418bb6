// The base of the benchmarks of WRITEs and READs: the options, who posts, the region that is worked on. SENDs go the
// same way where a benchmark offers them beside.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/region.hpp"

namespace verbscope {

class OneSided : public Benchmark {
 public:
  // Refuses a validation that would check nothing. Classes that have an adjust of their own call it.
  void adjust(Options& options) override;
  Traffic traffic() const override;
  QueueNeeds needs(const Operation& operation, Side side) const override;
  RegionNeeds region(const Operation& operation, Side side, std::uint32_t qps) const override;
  void fill(const Operation& operation, Side side, std::span<std::byte> region) const override;
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override;
  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override;

 protected:
  explicit OneSided(Verb verb) : verb_(verb) {}

  // Each registers some of the options.
  void add_direction(OptionTable& table);
  void add_outstanding(OptionTable& table);
  void add_region(OptionTable& table);
  void add_verb(OptionTable& table, bool with_send);

  bool posts(Side side) const { return everybody_ || side == driver_; }

  Verb verb_;
  Side driver_ = Side::server;
  bool everybody_ = false;  // both sides post, and the rate is the driver's
  bool random_turns_ = false;
  std::uint32_t outstanding_ = 0;  // operations on each QP; 0: as many as --tx_depth

 private:
  std::uint64_t region_size_ = 64 << 10;  // bytes
  Addresses addresses_ = Addresses::sequential;
  bool huge_pages_ = false;
};

// One verb, outbound (the server posts, the clients' memory is worked on) or inbound (the other way round). The rate is
// that of the completions where they are posted.
class OneSidedRate final : public OneSided {
 public:
  OneSidedRate(Verb verb, Description description) : OneSided(verb), description_(std::move(description)) {}

  Description describe() const override { return description_; }

  void options(OptionTable& table) override {
    add_direction(table);
    add_outstanding(table);
    add_region(table);
  }

 private:
  Description description_;
};

}  // namespace verbscope
