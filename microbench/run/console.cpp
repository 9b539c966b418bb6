#include "microbench/run/console.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/text.hpp"

namespace verbscope {

namespace {

// "1 thread", "4 threads".
std::string counted_noun(std::uint32_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string point_line(const Operation& operation, const Record& record, const std::string& what) {
  const Json& c = record.config;
  const auto number = [&c](const char* key) { return c.value(key, 0u); };
  std::string text = fmt::format("{} on {}: {} {}, {}", record.benchmark, record.environment.value("fabric", ""),
                                 c.value("connection", ""), operation.label, what);
  if (number("window") > 0) text += fmt::format(", window {}", number("window"));
  text +=
      fmt::format("; server: {}, {} each", counted_noun(number("threads"), "thread"), counted_noun(number("qp"), "QP"));
  const bool alone = record.environment.value("fabric", "") == "null";
  if (!alone) {
    text += fmt::format("; {}, {} each", counted_noun(number("clients"), "client"),
                        counted_noun(number("client_threads"), "thread"));
  }
  return text + "\n";
}

std::string point_line(const Operation& operation, const Record& record) {
  const Json& c = record.config;
  const std::string payload = c.value("header_only", false) ? "header-only"
                                                            : fmt::format("{} B{}", c.value("size", 0),
                                                                          c.value("inlined", false) ? " inline" : "");
  return point_line(
      operation, record,
      fmt::format("{}, post list {}, signal every {}", payload, c.value("post_list", 0), c.value("cq_mod", 0)));
}

bool labelled(const Record& record) {
  return record.environment.value("simulated", false);
}

// The rate of a point in the table, its bandwidth, and its bound.
std::string rate_cells(const Record& record) {
  const Json& result = record.result;
  if (!result.at("rate_mops").is_number()) return fmt::format("  not counted: {}", result.value("not_counted", ""));
  std::string text = fmt::format(" {:>10} {:>10} {:>11}", with_digits(result.at("rate_mops"), 3),
                                 with_digits(result.value("bandwidth_gbit_per_s", 0.0), 3),
                                 with_digits(result.value("bandwidth_mb_per_s", 0.0), 1));
  if (record.prediction.is_object()) {
    text += fmt::format("  at most {} Mops, by {}", with_digits(record.prediction.value("bound_mops", 0.0), 3),
                        record.prediction.value("binding", ""));
  }
  if (const auto lost = result.value("lost", 0ull); lost > 0) text += fmt::format("  {} lost", lost);
  return text;
}

std::string thread_range(const Json& threads) {
  double low = threads.at(0).at("rate_mops"), high = low;
  for (const Json& thread : threads) {
    low = std::min(low, thread.at("rate_mops").get<double>());
    high = std::max(high, thread.at("rate_mops").get<double>());
  }
  return threads.size() == 1 ? "" : fmt::format(" ({} to {} per thread)", with_digits(low, 3), with_digits(high, 3));
}

// If both sides post: the rate of each direction.
std::string directions_line(const Json& result) {
  if (!result.contains("rate_out_mops")) return "";
  return fmt::format("  both ways: {} Mops out, {} Mops in\n", with_digits(result.at("rate_out_mops"), 3),
                     with_digits(result.at("rate_in_mops"), 3));
}

// The rate and the bandwidth, or why this side has none.
std::string rate_line(const Json& result, const char* label) {
  const double window_s = result.at("window_s");
  if (!result.at("rate_mops").is_number()) {
    return fmt::format("  not counted: {}; {:g} {}s\n", result.value("not_counted", ""), window_s, label);
  }
  const double rate = result.at("rate_mops");
  if (result.value("ops", 0ull) == 1) return "  one operation has no rate\n";
  const double payload = rate > 0 ? result.value("bandwidth_mb_per_s", 0.0) / rate : 0;
  return fmt::format("  {} over {:g} {}s\n", rate_text(rate, thread_range(result.at("threads")), payload, label),
                     window_s, label) +
         directions_line(result);
}

// A rate that was not steady in the first interval, and how long the point was extended.
std::string steadiness_note(const Record& record, const char* label) {
  const auto found = record.result.find("steadiness");
  if (found == record.result.end() || found->value("windows", 1) < 2) return "";
  return fmt::format("  not steady at first: this is interval {}, after {:g} {}s (--longest {:g})\n",
                     found->value("windows", 0), found->value("before_s", 0.0), label,
                     record.config.value("longest_s", 0.0));
}

}  // namespace

std::string rate_text(double mops, const std::string& between, double payload, const char* label) {
  std::string text = fmt::format("{} {}Mops{}", with_digits(mops, 3), label, between);
  if (payload > 0) {
    text +=
        fmt::format(", {} Gb/s, {} MB/s", with_digits(mops * payload * 8 / 1000, 3), with_digits(mops * payload, 1));
  }
  return text;
}

std::string table_line(const std::string& payload, const std::string& rest) {
  return fmt::format(" {:>7}{}\n", payload, rest);
}

std::string table_head(const Benchmark& benchmark, const Record& record) {
  const std::string columns = benchmark.row_heading(record.result);
  std::string what = fmt::format("post list {}", record.config.value("post_list", 0));
  if (const auto limit = record.config.value("inline_size", 0u); limit > 0) {
    what += fmt::format(", inline up to {} B", limit);
  }
  return point_line(benchmark.draft().operation, record, what) + (labelled(record) ? "  simulated time\n" : "") +
         table_line("bytes", columns.empty() ? fmt::format(" {:>10} {:>10} {:>11}", "Mops", "Gb/s", "MB/s") : columns);
}

std::string table_row(const Benchmark& benchmark, const Record& record) {
  const std::string cells = benchmark.row(record.result);
  return table_line(record.config.at("size").dump(), cells.empty() ? rate_cells(record) : cells);
}

namespace {

// RNR NAKs of receivers without a posted RECV; the sender waits after each and sends again.
std::string rnr_line(const Record& record) {
  std::uint64_t naks = 0;
  for (const CounterReport& report : record.counters) naks += report.extra.value("rnr_naks_sent", std::uint64_t{0});
  if (naks == 0) return "";
  return fmt::format(
      "  {} RNR NAKs: no RECV was posted for these messages (--rx_depth {}), so their QPs waited and sent again\n",
      naks, record.config.value("rx_depth", 0));
}

// Drops, pauses and marks of a simulated Ethernet network in the measured interval; empty if none.
std::string network_line(const Record& record) {
  double paused = 0, deepest = 0;
  const auto sum = [&record](const char* key) {
    std::uint64_t all = 0;
    for (const CounterReport& report : record.counters) all += report.extra.value(key, std::uint64_t{0});
    return all;
  };
  for (const CounterReport& report : record.counters) {
    paused = std::max(paused, report.extra.value("rx_pause_ps", 0.0) / (report.window_s * 1e12));
    deepest = std::max(deepest, report.extra.value("deepest_queue_bytes", 0.0));
  }
  std::vector<std::string> parts;
  const auto add = [&parts, &sum](const char* key, const char* what) {
    if (const std::uint64_t count = sum(key); count > 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  if (deepest == 0) return "";  // not Ethernet
  add("dropped_full_buffer", "packets dropped by full buffers");
  add("packets_resent", "sent again");
  if (const std::uint64_t pauses = sum("rx_pauses"); pauses > 0) {
    parts.push_back(fmt::format("{} pauses, up to {:.0f} % of a node's time", pauses, 100 * paused));
  }
  add("np_ecn_marked_roce_packets", "packets marked");
  add("np_cnp_sent", "CNPs");
  if (parts.empty()) return "";
  return fmt::format("  network: {}; deepest queue {:.0f} KB\n", fmt::join(parts, ", "), deepest / 1000);
}

// The assumed parameters of the simulated cluster that the result depends on.
std::string assumed_line(const Record& record) {
  const Json assumed = record.environment.value("assumed", Json::object());
  std::vector<std::string> parts;
  for (const auto& [mechanism, parameters] : assumed.items()) {
    const std::size_t count = parameters.at("assumed").size(), of = parameters.at("of");
    parts.push_back(count == of ? fmt::format("{} (all {})", mechanism, of)
                                : fmt::format("{} ({} of {})", mechanism, count, of));
  }
  if (parts.empty()) return "";
  return fmt::format("  depends on assumed parameters of {}, neither documented nor measured: {}\n",
                     record.environment.value("fabric", ""), fmt::join(parts, ", "));
}

}  // namespace

std::string summary(const Operation& operation, const Record& record) {
  const char* label = labelled(record) ? kSimulatedLabel : "";
  std::string text = point_line(operation, record);
  text += rate_line(record.result, label);
  text += steadiness_note(record, label);
  if (record.prediction.is_object()) {
    text +=
        fmt::format("  model: the interface (MMIO, PCIe, wire) allows at most {} Mops, by {}; the NIC may be slower\n",
                    with_digits(record.prediction.value("bound_mops", 0.0), 3), record.prediction.value("binding", ""));
  } else if (record.result.contains("no_prediction")) {
    text += fmt::format("  model: none: {}\n", record.result.value("no_prediction", ""));
  }
  if (record.result.value("messages_expected", 0ull) > 0) {
    const auto lost = record.result.value("lost", 0ull);
    text += lost == 0 ? "  no message was lost\n"
                      : fmt::format("  {} of {} messages were lost, including the warm-up\n", lost,
                                    record.result.value("messages_expected", 0ull));
  }
  text += rnr_line(record);
  text += network_line(record);
  text += assumed_line(record);
  if (record.result.contains("validation") && record.result.at("validation").is_object()) {
    text += fmt::format("  validated: {} {}, {} wrong\n", record.result.at("validation").value("checked", 0ull),
                        operation.verb == Verb::write ? "written places" : "messages",
                        record.result.at("validation").value("wrong", 0ull));
  }
  return text;
}

std::string latency_line(const Json& result) {
  if (!result.contains("lat_p50_ns") || !result.at("lat_p50_ns").is_number()) return "";
  const auto us = [&result](const char* key) { return result.at(key).get<double>() * 1e-3; };
  return fmt::format("  latency: mean {:.2f} us, p50 {:.2f}, p99 {:.2f}\n", us("lat_mean_ns"), us("lat_p50_ns"),
                     us("lat_p99_ns"));
}

std::string batches_line(const Json& result) {
  const auto batches = result.find("answers_per_post");
  if (batches == result.end() || !batches->is_object()) return "";
  return fmt::format("  responses per post: mean {:.2f}, p50 {}, p99 {}\n", batches->value("mean", 0.0),
                     batches->value("p50", 0ull), batches->value("p99", 0ull));
}

}  // namespace verbscope
