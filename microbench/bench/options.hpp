// The options that all benchmarks share. Names and meanings are perftest's if perftest has the option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "microbench/bench/option_table.hpp"
#include "nic_sim/profile/profile.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

inline constexpr std::uint32_t kDefaultSize = 64;  // bytes: one cache line
inline constexpr std::uint32_t kUsualRxDepth = 512;

// Settings of QPs and of the paths of their packets.
struct QpSettings {
  std::uint32_t service_level = 0;
  std::uint32_t traffic_class = 0;           // of the GRH
  std::uint32_t flow_label = 0;              // of the GRH
  std::uint32_t pkey_index = 0;              // into the port's table
  std::optional<std::uint32_t> qp_timeout;   // RC: 4.096 us * 2^this, 0: no timeout; none: the device's need
  std::optional<std::uint32_t> retry_count;  // RC; none: kRetryCount
  std::optional<std::uint32_t> outstanding;  // READs and atomics of an RC QP; none: as many as both devices allow
  std::optional<std::uint32_t> rnr_timer;    // RC: the encoding of IBTA's RNR NAK timer field; none: QpReceive's
  std::optional<std::uint32_t> rnr_retry;    // RC: 7: no limit; none: QpSend's
  std::uint32_t tos = 0;                     // perftest's name of traffic_class, for packets with a GRH
  bool rdma_cm = false;                      // librdmacm connects them
};

// The figure that --output prints, as perftest does: MiB/s or Gb/s, Mops, us.
enum class Figure { bandwidth, message_rate, latency };

struct Options {
  // The operation.
  Transport connection = Transport::rc;
  std::optional<std::uint32_t> size;  // bytes; kDefaultSize, or 0 when header_only
  bool header_only = false;
  std::uint32_t post_list = 1;
  std::uint32_t inline_size = 0;        // bytes
  std::optional<std::uint32_t> cq_mod;  // signal every this many
  std::uint32_t qp = 1;                 // per thread
  std::uint32_t tx_depth = 128;
  std::optional<std::uint32_t> rx_depth;  // none: the plan decides
  std::uint32_t threads = 1;              // on the machine under test
  std::uint32_t inline_recv = 0;          // bytes
  bool wr_api = false;
  std::string uars = "default";  // see parse_uars
  bool events = false;
  bool validate = false;
  bool disable_pcie_relaxed = false;
  // Its length.
  std::optional<Picos> duration;
  std::optional<std::uint64_t> iters;  // per QP
  bool run_infinitely = false;
  std::optional<Picos> warmup;
  std::optional<Picos> longest;
  std::uint64_t seed = 1;
  // The place.
  std::string fabric = "verbs";
  std::optional<std::uint32_t> sim_threads;
  std::optional<FlowControl> flow_control;              // of a simulated network; none: the profile's
  std::optional<CongestionControl> congestion_control;  // of simulated adapters; none: the profile's
  std::optional<double> loss;                           // of packets in a simulated network; none: the profile's
  std::optional<std::uint32_t> clients;
  std::optional<std::uint32_t> client_threads;
  std::string ib_dev;
  std::string ib_port = "all";
  int gid_index = -1;
  std::optional<std::uint32_t> mtu;  // bytes
  QpSettings qps;
  std::uint32_t port = 18515;  // perftest's
  std::string listen;          // an address of the server; empty: all
  std::optional<Picos> timeout;
  std::string secret;
  bool any_build = false;
  std::string cores;
  // Limits of the rate.
  std::optional<double> limit_bw;       // MiB/s (2^20 bytes), or with report_gbits Gb/s (10^9 bits)
  std::optional<double> limit_msgrate;  // Mops
  bool report_gbits = false;
  // Counters beside the benchmark.
  std::string counter_sources = "auto";
  bool require_counters = false;
  // Options of perftest without effect.
  bool cpu_freq = false;
  bool no_peak = false;
  bool perform_warm_up = false;
  bool comm_rdma_cm = false;
  // Output.
  std::string out_json_file;
  bool out_json = false;  // append to out_json_file, or to perftest's default file
  std::optional<Figure> output;
  std::string host;  // of the server; empty: this process is the server
};

// Registers all common options; `options` must outlive the table.
void add_common_options(OptionTable& table, Options& options);
// Registers the options of a benchmark without peers (Benchmark::local), and sets their defaults.
void add_local_options(OptionTable& table, Options& options);

// Offers in --help the transports that have one of the verbs.
void offer_transports(OptionTable& table, const std::vector<Verb>& verbs);

// The name of a given option for a simulated Ethernet network, or null.
const char* network_option(const Options& options);

// Checks the options alone, without a plan or a device; `local`: of a benchmark without peers. Throws UsageError.
void check_options(const Options& options, bool local = false);

// "0-3,8" as {0, 1, 2, 3, 8}; throws UsageError.
std::vector<int> parse_cores(const std::string& text);

// Doorbell registers of the QPs that a node posts to.
struct UarChoice {
  bool exclusive = false;    // one per thread
  std::uint32_t shared = 0;  // otherwise this many for all; 0: the driver's default
};

// "default", "exclusive" or an even number from 8 to 512. Throws UsageError.
UarChoice parse_uars(const std::string& text);

// The number of the port that --ib_port or --ib_dev ("mlx5_0:2") selects, 0: every active port. Throws UsageError, also
// if both select one and they differ.
int selected_port(const Options& options);

// --all: a point for each of many payloads.
inline constexpr std::uint32_t kLastOfAll = 1u << 23;  // bytes: the last of perftest's rates

// Registers the option.
void add_all_sizes(OptionTable& table, bool& all, const std::string& last = "2^23");

// 2, 4, 8 ... bytes up to --size, by default to `last`. Throws UsageError.
std::vector<std::uint32_t> all_sizes(const Options& options, std::uint32_t last = kLastOfAll);

}  // namespace verbscope
