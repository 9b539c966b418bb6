// The number of outstanding WQEs that an adapter caches. Each thread has --window signaled READs or WRITEs outstanding
// on each of its QPs. PCIe reads per operation above those of the model are WQEs that the adapter read again.
#include <algorithm>

#include "common/pcie_events.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/rate/one_sided.hpp"
#include "microbench/run/runner.hpp"

namespace verbscope {

namespace {

class WqeCache final : public OneSided {
 public:
  WqeCache() : OneSided(Verb::read) { outstanding_ = 64; }

  Description describe() const override {
    return {"wqe_cache", "Rate and extra PCIe reads with many outstanding READs or WRITEs over RC or UC.",
            "--verb write -s 64 --window 64"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    add_verb(table, false);
    add_outstanding(table);
    add_order(table);
    add_region(table);
  }

  void adjust(Options& options) override {
    if (!table_->given("--tx_depth")) options.tx_depth = std::max(options.tx_depth, outstanding_);
    if (!table_->given("--window")) outstanding_ = std::min(outstanding_, options.tx_depth);
    OneSided::adjust(options);
    if (!options.cq_mod) options.cq_mod = 1;
  }

  void finish(Outcome& outcome) const override {
    Json& result = outcome.result;
    for (const char* name : {"reads_per_op", "model_reads_per_op", "extra_reads_per_op", "extra_reads_uncertainty",
                             "wqe_cache_misses_per_op"}) {
      result[name] = Json();  // null: not counted, or no prediction
    }
    const auto counts_reads = [](const CounterReport& report) {
      return report.node == "server" && report.sees("dma_read_lines");
    };
    const auto found = std::ranges::find_if(outcome.counters, counts_reads);
    if (found == outcome.counters.end()) return;
    const CounterReport& server = *found;
    // If the adapter counts operations too, use its count: it is of the same interval as its reads.
    const double ops = server.extra.value("messages_sent", operations_in_window(result, server));
    if (ops <= 0) return;
    const double reads = static_cast<double>(server.events.dma_read_lines) / ops;
    result["reads_per_op"] = reads;
    const auto misses = server.extra.find("wqe_cache_misses");
    if (misses != server.extra.end()) result["wqe_cache_misses_per_op"] = misses->get<double>() / ops;
    if (!outcome.prediction.is_object()) return;
    const double modelled = outcome.prediction.at("pcie_per_op").at("dma_read_lines").get<double>();
    result["model_reads_per_op"] = modelled;
    result["extra_reads_per_op"] = reads - modelled;
    // WQEs of requests that are outstanding at an end of the interval may be read inside it and complete outside, or
    // the other way round.
    const double queues = wait_ == WaitFor::any ? outcome.config.at("qp").get<double>() : 1;
    const double outstanding = static_cast<double>(result.at("threads").size()) * queues * outstanding_;
    result["extra_reads_uncertainty"] = modelled * outstanding / ops;
  }

  std::string report(const Json& result) const override {
    if (result.value("extra_reads_per_op", Json()).is_null()) return "";  // null, or at a client
    const auto number = [&result](const char* key) { return result.at(key).get<double>(); };
    return fmt::format("  PCIe reads per operation: {:.3f}, by the model {:.3f}: {:.3f} extra, +- {:.3f}\n",
                       number("reads_per_op"), number("model_reads_per_op"), number("extra_reads_per_op"),
                       number("extra_reads_uncertainty"));
  }

 private:
  const OptionTable* table_ = nullptr;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::WqeCache>(argc, argv);
}
