// Rate against the number of connected QPs: a thread takes its QPs in turn or at random, with some
// operations outstanding on each. It posts READs or WRITEs, or SENDs over UD, which need no QP a peer. One side posts,
// or every machine does.
#include <optional>

#include "common/error.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/rate/one_sided.hpp"
#include "microbench/run/outcome.hpp"
#include "microbench/run/runner.hpp"

namespace verbscope {

namespace {

class QpScaling final : public OneSided {
 public:
  QpScaling() : OneSided(Verb::read) { outstanding_ = 1; }

  Description describe() const override {
    return {"qp_scaling", "Rate of READs, WRITEs or SENDs against the number of QPs.",
            "--verb read -s 32 --connections 512"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    add_verb(table, true);
    add_direction(table);
    add_outstanding(table);
    add_order(table);
    add_region(table);
    table.integer("--connections", connections_, 1u, 1u << 20,
                  "QPs of the server in all, instead of --qp for each thread");
    table.choice<bool>("--active", everybody_, {{"one", false}, {"all", true}},
                       "one: the side that --direction says posts; all: both do");
  }

  void adjust(Options& options) override {
    if (everybody_ && verb_ == Verb::send) fail_usage("--active all: not with --verb send");
    if (!options.cq_mod) options.cq_mod = 1;
    if (connections_) {
      if (table_->given("--qp"))
        fail_usage("--qp {}: --connections {} says how many there are", options.qp, *connections_);
      if (*connections_ % options.threads != 0) {
        fail_usage("--connections {} is not a multiple of --threads {}", *connections_, options.threads);
      }
      options.qp = *connections_ / options.threads;
    }
    OneSided::adjust(options);
  }

 private:
  const OptionTable* table_ = nullptr;
  std::optional<std::uint32_t> connections_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::QpScaling benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
