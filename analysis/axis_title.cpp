#include "analysis/axis_title.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace verbscope {
namespace {

struct Title {
  std::string_view key, words;
};

constexpr std::array kTitles{
    Title{"size", "payload (bytes)"},
    Title{"rate_mops", "rate (Mops)"},
    Title{"adapter_mops", "rate by the adapter's counters (Mops)"},
    Title{"bandwidth_gbit_per_s", "bandwidth (Gb/s)"},
    Title{"bandwidth_mb_per_s", "bandwidth (MB/s)"},
    Title{"lat_mean_ns", "mean latency (ns)"},
    Title{"lat_p50_ns", "median latency (ns)"},
    Title{"lat_p99_ns", "99th percentile of latency (ns)"},
    Title{"extra_reads_per_op", "extra DMA reads an operation (cache lines)"},
    Title{"atomic_slot_wait_ns_per_op", "wait for atomic slots an operation (ns)"},
    Title{"post_list", "work requests a post"},
    Title{"recv_list", "RECVs a post"},
    Title{"inline_size", "largest inline payload (bytes)"},
    Title{"inline_recv", "largest inline receive (bytes)"},
    Title{"region_size", "memory region (bytes)"},
    Title{"stride", "stride (bytes)"},
    Title{"mtu", "path MTU (bytes)"},
    Title{"qp", "QPs a thread"},
    Title{"connections", "connected QPs"},
    Title{"threads", "threads of the server"},
    Title{"clients", "client machines"},
    Title{"client_threads", "threads of a client"},
    Title{"window", "operations outstanding a QP"},
    Title{"outstanding", "requests outstanding a client's thread"},
    Title{"counters", "counters in memory"},
    Title{"cq_mod", "work requests a signal"},
    Title{"tx_depth", "depth of a send queue (WQEs)"},
    Title{"rx_depth", "depth of a receive queue (WQEs)"},
    Title{"put_percent", "PUTs (%)"},
};

// Unit suffixes of keys, longer ones first.
constexpr std::array kUnits{
    Title{"_gbit_per_s", "Gb/s"},
    Title{"_mb_per_s", "MB/s"},
    Title{"_ns_per_op", "ns an operation"},
    Title{"_per_op", "an operation"},
    Title{"_percent", "%"},
    Title{"_bytes", "bytes"},
    Title{"_mops", "Mops"},
    Title{"_ns", "ns"},
    Title{"_us", "us"},
    Title{"_s", "s"},
};

}  // namespace

std::string axis_title(const std::string& key) {
  const auto* const known = std::ranges::find(kTitles, key, &Title::key);
  if (known != kTitles.end()) return std::string(known->words);
  const auto* const unit = std::ranges::find_if(kUnits, [&key](const Title& each) { return key.ends_with(each.key); });
  std::string words = unit == kUnits.end() ? key : key.substr(0, key.size() - unit->key.size());
  std::ranges::replace(words, '_', ' ');
  return unit == kUnits.end() ? words : fmt::format("{} ({})", words, unit->words);
}

}  // namespace verbscope
