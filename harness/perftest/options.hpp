// The options of the benchmark `perftest`, and the command line of perftest that they give.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "microbench/bench/option_table.hpp"

namespace verbscope {

// An option without a value is not passed on: perftest then has its own default.
struct PerftestOptions {
  // What perftest measures.
  std::string tool = "ib_write_bw";
  std::string connection = "RC";
  std::optional<std::uint32_t> size{};  // bytes
  std::optional<std::uint32_t> post_list{};
  std::optional<std::uint32_t> inline_size{};  // bytes
  std::optional<std::uint32_t> cq_mod{};
  std::optional<std::uint32_t> qp{};
  std::optional<std::uint32_t> tx_depth{};
  std::optional<std::uint32_t> rx_depth{};
  std::optional<std::uint32_t> outstanding{};
  std::optional<std::uint32_t> mtu{};  // bytes
  std::string atomic_type = "FETCH_AND_ADD";
  bool events = false;
  bool bidirectional = false;
  bool no_peak = false;
  std::optional<Picos> duration{};
  std::optional<std::uint64_t> iters{};
  // Where it runs.
  std::string fabric = "verbs";
  std::string ib_dev{};
  int gid_index = -1;
  std::uint32_t clients = 1;
  std::uint64_t seed = 1;  // simulated
  std::uint32_t port = 18515;
  std::string listen{};
  std::string secret{};
  std::string cores{};
  std::optional<Picos> timeout = std::chrono::seconds(10);
  std::optional<Picos> time_limit = std::chrono::seconds(100);
  std::string out_json_file{};
  std::string host{};  // of the server; empty: this process is the server, or simulates both
};

// Registers the options; `options` must outlive the table.
void add_perftest_options(OptionTable& table, PerftestOptions& options);

// Refuses what this program cannot run. What perftest refuses is left to it. Throws UsageError.
void check_perftest_options(const PerftestOptions& options);

// The program and its arguments, except for the server's port and host.
std::vector<std::string> perftest_command(const PerftestOptions& options);

}  // namespace verbscope
