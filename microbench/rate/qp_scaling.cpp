// Rate against the number of connected QPs. A thread uses its QPs in turn or at random, with some outstanding
// operations on each. It posts READs, WRITEs or SENDs; SENDs over UD need no QP per peer. One side posts, or every
// machine.
#include <algorithm>
#include <optional>

#include "common/error.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/rate/one_sided.hpp"
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
    table.integer(
        "--connections", connections_, 1u, 1u << 20,
        "total number of QPs of the server, a multiple of --threads and at least one per client; replaces --qp");
    table.choice<bool>("--active", both_sides_, {{"one", false}, {"all", true}},
                       "one: only the side that --direction selects posts; all: both sides post");
  }

  void adjust(Options& options) override {
    if (both_sides_ && verb_ == Verb::send) fail_usage("--active all: not with --verb send");
    if (!options.cq_mod) options.cq_mod = 1;
    if (connections_) {
      if (table_->given("--qp"))
        fail_usage("--qp {}: --connections {} sets the number of QPs; give one of them", options.qp, *connections_);
      const std::uint32_t threads = options.threads, rest = *connections_ % threads;
      if (rest != 0) {
        const std::uint32_t more = *connections_ - rest + threads;
        const std::string less = *connections_ > threads ? fmt::format("{} or ", *connections_ - rest) : "";
        fail_usage("--connections {} is not a multiple of --threads {}: give --connections {}{}", *connections_,
                   threads, less, more);
      }
      options.qp = *connections_ / threads;
      const bool one_client_each = facts(options.connection).connected;
      if (one_client_each && options.clients.value_or(1) > *connections_) {
        fail_usage("--clients {}: --connections {} reach at most {} clients: give --connections {}, or --clients {}",
                   *options.clients, *connections_, *connections_, round_up(*options.clients, threads), *connections_);
      }
    }
    OneSided::adjust(options);
  }

  // Adds the number of QP contexts that the adapter read per operation: the cost of many QPs.
  void finish(Outcome& outcome) const override {
    Json& misses = outcome.result["qp_context_misses_per_op"] = Json();  // null: not counted
    const auto of_server = [](const CounterReport& report) {
      return report.node == "server" && report.extra.contains("qp_context_misses");
    };
    const auto found = std::ranges::find_if(outcome.counters, of_server);
    if (found == outcome.counters.end()) return;
    const double ops = operations_in_window(outcome.result, *found);
    if (ops > 0) misses = found->extra.at("qp_context_misses").get<double>() / ops;
  }

  std::string report(const Json& result) const override {
    const Json misses = result.value("qp_context_misses_per_op", Json());
    if (misses.is_null()) return "";
    std::string text = fmt::format("  QP contexts read into the adapter: {:.3f} per operation", misses.get<double>());
    if (outstanding_ != 1) {
      text += outstanding_ == 0 ? "; with a full send queue outstanding on each QP"
                                : fmt::format("; with {} operations outstanding on each QP", outstanding_);
      text += ", which hides the cost of these reads: --window 1 shows it";
    }
    return text + '\n';
  }

 private:
  const OptionTable* table_ = nullptr;
  std::optional<std::uint32_t> connections_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::QpScaling>(argc, argv);
}
