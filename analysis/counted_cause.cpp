#include "analysis/counted_cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/keys.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"

namespace verbscope {
namespace {

// The least rise, per operation and of what was counted before, that is no noise.
constexpr double kLeastRise = 0.05;

struct Counter {
  std::string_view key, cause, unit;
};

// Counts of an adapter, or of the port of a device, under their last word in `extra`: the simulator's, then those of
// the kernel's drivers mlx5, mlx4, bnxt_re, irdma and efa (hw_counters of Linux 6.1, drivers/infiniband/hw).
constexpr std::array kOfAdapters{
    Counter{"wqe_cache_reread_lines", "WQE cache", "re-reads"},
    Counter{"qp_context_misses", "QP-context cache", "misses"},
    Counter{"translation_misses", "translation cache", "misses"},
    Counter{"rnr_naks_sent", "too few RECVs", "RNR NAKs"},
    Counter{"rnr_nak_retry_err", "too few RECVs", "RNR NAKs"},
    Counter{"sq_num_rnr", "too few RECVs", "RNR NAKs"},
    Counter{"rq_num_rnr", "too few RECVs", "RNR NAKs"},
    Counter{"rnr_naks_rcvd", "too few RECVs", "RNR NAKs"},
    Counter{"dropped_no_recv", "too few RECVs", "dropped messages"},
    Counter{"out_of_buffer", "too few RECVs", "messages without a RECV"},
    Counter{"rx_drops", "too few RECVs", "dropped packets"},
    Counter{"packets_resent", "loss", "packets sent again"},
    Counter{"out_of_sequence", "loss", "packets out of sequence"},
    Counter{"packet_seq_err", "loss", "NAKs for a packet out of sequence"},
    Counter{"local_ack_timeout_err", "loss", "time-outs"},
    Counter{"rq_num_oos", "loss", "packets out of sequence"},
    Counter{"sq_num_oos", "loss", "NAKs for a packet out of sequence"},
    Counter{"sq_num_to", "loss", "time-outs"},
    Counter{"oos_drop_count", "loss", "packets out of sequence"},
    Counter{"seq_err_naks_rcvd", "loss", "NAKs for a packet out of sequence"},
    Counter{"to_retransmits", "loss", "time-outs"},
    Counter{"tcpRetransSegs", "loss", "segments sent again"},
    Counter{"retrans_pkts", "loss", "packets sent again"},
    Counter{"np_cnp_sent", "congestion", "CNPs sent"},
    Counter{"rp_cnp_handled", "congestion", "CNPs handled"},
    Counter{"tx_cnp_pkts", "congestion", "CNPs sent"},
    Counter{"rx_cnp_pkts", "congestion", "CNPs handled"},
    Counter{"cnpSent", "congestion", "CNPs sent"},
    Counter{"cnpHandled", "congestion", "CNPs handled"},
};
// Events at the machine under test, as result_number has them.
constexpr std::array kOfPcie{
    Counter{"dma_read_lines_per_op", "PCIe reads", "cache lines"},
    Counter{"dma_write_full_lines_per_op", "PCIe writes", "full cache lines"},
    Counter{"dma_write_partial_lines_per_op", "PCIe writes", "partial cache lines"},
    Counter{"mmio_wc_lines_per_op", "MMIO", "write-combined lines"},
    Counter{"mmio_doorbells_per_op", "MMIO", "doorbells"},
};

// The sum over all nodes per operation; none where no node has the key.
std::optional<double> counted_by_adapters(const Record& record, std::string_view key) {
  std::optional<double> sum;
  for (const CounterReport& report : record.counters) {
    const double ops = operations_in_window(record.result, report);
    if (!(ops > 0)) continue;
    for (const auto& [name, value] : report.extra.items()) {
      if (value.is_number() && name.substr(name.rfind('/') + 1) == key) {
        sum = sum.value_or(0) + value.get<double>() / ops;
      }
    }
  }
  return sum;
}

std::optional<std::string> rise(const Counter& counter, const std::optional<double>& before,
                                const std::optional<double>& after) {
  if (!before || !after || *after - *before < std::max(kRereadCounts, kLeastRise * *before)) return std::nullopt;
  const std::string than = *before < kRereadCounts ? "" : fmt::format(" instead of {:.2g}", *before);
  return fmt::format("{}, {:.2g} {} per operation{}", counter.cause, *after, counter.unit, than);
}

}  // namespace

std::optional<std::string> adapter_cause(const Record& before, const Record& after) {
  for (const Counter& counter : kOfAdapters) {
    auto cause = rise(counter, counted_by_adapters(before, counter.key), counted_by_adapters(after, counter.key));
    if (cause) return cause;
  }
  return std::nullopt;
}

std::optional<std::string> counted_cause(const Record& before, const Record& after) {
  if (auto cause = adapter_cause(before, after)) return cause;
  for (const Counter& counter : kOfPcie) {
    const std::string key(counter.key);
    if (auto cause = rise(counter, result_number(before, key), result_number(after, key))) return cause;
  }
  return std::nullopt;
}

}  // namespace verbscope
