#include "analysis/views.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "analysis/csv.hpp"
#include "analysis/points.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

constexpr double kMebi = 1024 * 1024;

// The name that perftest has for the operation of a record; empty when it has no such test.
std::string_view test_name(const Record& record) {
  struct Test {
    std::string_view kind, words;
  };
  static constexpr std::array<Test, 10> kTests{{{"send_rate", "Send"},
                                                {"recv_rate", "Send"},
                                                {"write_rate", "RDMA_Write"},
                                                {"read_rate", "RDMA_Read"},
                                                {"send", "Send"},
                                                {"write", "RDMA_Write"},
                                                {"write_inline", "RDMA_Write"},
                                                {"read", "RDMA_Read"},
                                                {"fetch_add", "Atomic FETCH_AND_ADD"},
                                                {"compare_swap", "Atomic CMP_AND_SWAP"}}};
  static constexpr std::array<std::string_view, 4> kWithVerb{"verb_latency", "atomic_rate", "wqe_cache", "qp_scaling"};
  const bool has_verb = std::ranges::find(kWithVerb, record.benchmark) != kWithVerb.end();
  const std::string kind = has_verb ? text_at(record.config, "verb") : record.benchmark;
  const auto* const found = std::ranges::find(kTests, kind, &Test::kind);
  return found == kTests.end() ? "" : found->words;
}

void put(Json& to, const char* key, const Json& from, const char* source) {
  if (const auto found = from.find(source); found != from.end() && !found->is_null()) to[key] = *found;
}

// Puts a latency, which `from` has in nanoseconds under `source`, in microseconds under `key`.
void put_time(Json& to, const char* key, const Json& from, const std::string& source) {
  if (const auto value = number_at(from, source)) to[key] = *value / 1000;
}

void put_latencies(Json& results, const Json& latency) {
  put_time(results, "t_min", latency, "lat_min_ns");
  put_time(results, "t_max", latency, "lat_max_ns");
  put_time(results, "t_typical", latency, "lat_p50_ns");
  put_time(results, "t_avg", latency, "lat_mean_ns");
  put_time(results, "percentile_99", latency, "lat_p99_ns");
  put_time(results, "percentile_99.9", latency, "lat_p99_9_ns");
}

void flatten(const Json& value, const std::string& prefix, Json& out) {
  for (const auto& [key, member] : value.items()) {
    const std::string name = prefix + "." + key;
    if (member.is_object()) {
      flatten(member, name, out);
    } else if (!member.is_array()) {
      out[name] = member;
    }
  }
}

Json flat(const Record& record) {
  Json out{{"id", point_id(record)},
           {"benchmark", record.benchmark},
           {"fabric", record.environment.at("fabric")},
           {"simulated", record.environment.at("simulated")},
           {"status", record.status == RecordStatus::ok ? "ok" : "failed"},
           {"reason", record.reason}};
  flatten(record.config, "config", out);
  flatten(record.result, "result", out);
  return out;
}

std::string cell(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

}  // namespace

std::vector<Json> perftest_views(const Record& record) {
  const Json& config = record.config;
  const std::string_view name = test_name(record);
  if (name.empty()) return {};
  const auto latency = record.result.find("latency");
  const bool times = latency != record.result.end() && latency->is_array() && !latency->empty();
  Json info{{"test", fmt::format("{} {} Test", name, times ? "Latency" : "BW")}};
  put(info, "Device", config, "ib_dev");
  put(info, "Number_of_qps", config, "qp");
  put(info, "Connection_type", config, "connection");
  put(info, "TX_depth", config, "tx_depth");
  put(info, "RX_depth", config, "rx_depth");
  put(info, "CQ_Moderation", config, "cq_mod");
  put(info, "Mtu", config, "mtu");
  put(info, "GID_index", config, "gid_index");
  put(info, "Max_inline_data", config, "inline_size");
  Json results{{"simulated", record.environment.at("simulated")}};
  put(results, "MsgSize", config, "size");
  put(results, "n_iterations", record.result, "ops");
  if (!times) {
    const auto rate = number_at(record.result, "rate_mops");
    const auto size = number_at(config, "size");
    if (rate && size) results["BW_average"] = *rate * 1e6 * *size / kMebi;
    if (rate) results["MsgRate"] = *rate;
    return {Json{{"test_info", std::move(info)}, {"results", std::move(results)}}};
  }
  std::vector<Json> out;
  for (const Json& of_size : *latency) {
    Json theirs = results;
    put(theirs, "MsgSize", of_size, "size");
    put(theirs, "n_iterations", of_size, "lat_samples");
    put_latencies(theirs, of_size);
    out.push_back(Json{{"test_info", info}, {"results", std::move(theirs)}});
  }
  return out;
}

std::string perftest_lines(const std::vector<const Record*>& records) {
  std::string out;
  std::set<std::string> refused;
  for (const Record* record : records) {
    if (record->status != RecordStatus::ok) continue;
    const std::vector<Json> views = perftest_views(*record);
    for (const Json& view : views) out += dump_json(view) + "\n";
    const std::string verb = text_at(record->config, "verb");
    if (views.empty()) refused.insert(record->benchmark + (verb.empty() ? "" : " --verb " + verb));
  }
  if (refused.empty()) return out;
  const std::string which = fmt::format("perftest has no test like {}", fmt::join(refused, ", "));
  if (out.empty()) fail("--view perftest: {}; --view jsonl and csv export it", which);
  warn(which + ": left out");
  return out;
}

std::string flat_lines(const std::vector<const Record*>& records) {
  std::string out;
  for (const Record* record : records) out += dump_json(flat(*record)) + "\n";
  return out;
}

std::string flat_csv(const std::vector<const Record*>& records) {
  std::vector<Json> rows;
  std::vector<std::string> keys;
  std::set<std::string> known;
  for (const Record* record : records) {
    rows.push_back(flat(*record));
    for (const auto& [key, value] : rows.back().items()) {
      if (known.insert(key).second) keys.push_back(key);
    }
  }
  std::string out = csv_line(keys);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) cells.push_back(row.contains(key) ? cell(row.at(key)) : "");
    out += csv_line(cells);
  }
  return out;
}

}  // namespace verbscope
