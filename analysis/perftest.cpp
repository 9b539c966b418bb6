#include "analysis/perftest.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "analysis/points.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

struct TestWords {
  std::string_view kind;   // a benchmark, or a verb if the benchmark has several
  std::string_view words;  // perftest's
};
// If several entries have the same words, reading a perftest test returns the first one.
constexpr std::array<TestWords, 10> kTestWords{{{"write_rate", "RDMA_Write"},
                                                {"read_rate", "RDMA_Read"},
                                                {"send_rate", "Send"},
                                                {"recv_rate", "Send"},
                                                {"fetch_add", "Atomic FETCH_AND_ADD"},
                                                {"compare_swap", "Atomic CMP_AND_SWAP"},
                                                {"write", "RDMA_Write"},
                                                {"write_inline", "RDMA_Write"},
                                                {"read", "RDMA_Read"},
                                                {"send", "Send"}}};
constexpr std::array<std::string_view, 4> kWithVerb{"verb_latency", "atomic_rate", "wqe_cache", "qp_scaling"};

using FactKind = PerftestFact::Kind;
constexpr std::array<PerftestFact, 14> kFacts{{{"Device", "Device", "ib_dev", FactKind::text},
                                               {"Number_of_qps", "Number of qps", "qp", FactKind::number},
                                               {"Transport_type", "Transport type", "transport_type", FactKind::text},
                                               {"Connection_type", "Connection type", "connection", FactKind::text},
                                               {"TX_depth", "TX depth", "tx_depth", FactKind::number},
                                               {"Post_List", "Post List", "post_list", FactKind::number},
                                               {"RX_depth", "RX depth", "rx_depth", FactKind::number},
                                               {"CQ_Moderation", "CQ Moderation", "cq_mod", FactKind::number},
                                               {"Mtu", "Mtu", "mtu", FactKind::number},
                                               {"Link_type", "Link type", "link_type", FactKind::text},
                                               {"GID_index", "GID index", "gid_index", FactKind::number},
                                               {"Max_inline_data", "Max inline data", "inline_size", FactKind::number},
                                               {"Outstand_reads", "Outstand reads", "outs", FactKind::number},
                                               {"TOS", "TOS", "tos", FactKind::number}}};
constexpr std::array<std::string_view, 16> kOtherFacts{
    "Dual-port",      "Using SRQ",   "PCIe relax order", "Lock-free",       "ibv_wr* API",     "Using DDP",
    "Recv Post List", "Buffer size", "GID index2",       "rdma_cm QPs",     "Use ROCm memory", "Data ex. method",
    "WARNING1",       "WARNING2",    "MultiCast_runs",   "Test with events"};

constexpr std::array<PerftestColumn, 17> kColumns{{{"MsgSize", "#bytes"},
                                                   {"sl", "#sl"},
                                                   {"n_iterations", "#iterations"},
                                                   {"BW_peak", "BW peak["},
                                                   {"BW_average", "BW average["},
                                                   {"MsgRate", "MsgRate["},
                                                   {"BW_port1", "BW Port1["},
                                                   {"MsgRate_port1", "MsgRate Port1["},
                                                   {"BW_port2", "BW Port2["},
                                                   {"MsgRate_port2", "MsgRate Port2["},
                                                   {"t_min", "t_min["},
                                                   {"t_max", "t_max["},
                                                   {"t_typical", "t_typical["},
                                                   {"t_avg", "t_avg["},
                                                   {"t_stdev", "t_stdev["},
                                                   {"percentile_99", "99% percentile["},
                                                   {"percentile_99.9", "99.9% percentile["}}};

// Normalises a name: "TX depth", "TX_depth " and "tx-depth" become equal.
std::string normalized_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += static_cast<char>(std::tolower(c));
  }
  return out;
}

// A row of perftest's table. Figures that the record lacks are 0, like values that perftest was not asked for.
struct PerftestRow {
  double size = 0, iterations = 0;
  double peak = 0, average = 0, rate = 0;                                         // of a bandwidth test
  double min = 0, max = 0, typical = 0, mean = 0, stdev = 0, p99 = 0, p99_9 = 0;  // us, of a latency test
};

// A record as perftest would print it: the facts above the table, and one row per size.
struct PerftestView {
  std::string title;
  bool simulated = false, latency = false, gbits = false;
  Json facts = Json::object();  // by the keys of kFacts
  std::vector<PerftestRow> rows;
};

double microseconds(const Json& from, const char* key) {
  return number_at(from, key).value_or(0) / 1000;
}

Json facts_of(const Record& record) {
  const Json& config = record.config;
  const bool reads = perftest_title(record).find("Read") != std::string::npos ||
                     text_at(config, "verb") == "fetch_add" || text_at(config, "verb") == "compare_swap";
  const bool sends = perftest_title(record).starts_with("Send");
  Json facts = Json::object();
  for (const PerftestFact& fact : kFacts) {
    const std::string_view option = fact.option;
    if ((option == "inline_size" && reads) || (option == "outs" && !reads) || (option == "rx_depth" && !sends))
      continue;
    const auto found = config.find(fact.option);
    if (found == config.end() || found->is_null()) continue;
    if (option == "post_list" && number_at(config, "post_list").value_or(0) <= 1) continue;
    if (option == "gid_index" && number_at(config, "gid_index").value_or(0) < 0) continue;
    if (option == "tos" && number_at(config, "tos").value_or(0) <= 0) continue;
    facts[fact.key] = *found;
  }
  // Marks the figures as simulated for readers of either form.
  if (record.environment.at("simulated").get<bool>()) facts["Device"] = record.environment.at("fabric");
  // perftest has one thread per process. The QPs of all our threads together move the same messages.
  const auto qp = number_at(config, "qp");
  if (qp) facts["Number_of_qps"] = static_cast<std::uint64_t>(*qp * number_at(config, "threads").value_or(1));
  return facts;
}

std::optional<PerftestView> perftest_view(const Record& record) {
  PerftestView view{.title = perftest_title(record), .rows = {}};
  if (view.title.empty()) return std::nullopt;
  view.simulated = record.environment.at("simulated").get<bool>();
  view.latency = view.title.find(" Latency ") != std::string::npos;
  view.facts = facts_of(record);
  PerftestRow row{.size = number_at(record.config, "size").value_or(0),
                  .iterations = number_at(record.result, "ops").value_or(0)};
  if (!view.latency) {
    const auto gbits = record.config.find("report_gbits");
    view.gbits = gbits != record.config.end() && gbits->is_boolean() && gbits->get<bool>();
    row.rate = number_at(record.result, "rate_mops").value_or(0);
    const double unit = view.gbits ? kPerftestGb : kPerftestMb;
    const auto printed = number_at(record.result, "bandwidth_gbit_per_s");
    row.average = (printed ? *printed * 1e9 / 8 : row.rate * 1e6 * row.size) / unit;
    row.peak = number_at(record.result, "bandwidth_peak_gbit_per_s").value_or(0) * 1e9 / 8 / unit;
    view.rows.push_back(row);
    return view;
  }
  for (const Json& of_size : record.result.at("latency")) {
    row.size = number_at(of_size, "size").value_or(row.size);
    row.iterations = number_at(of_size, "lat_samples").value_or(row.iterations);
    row.min = microseconds(of_size, "lat_min_ns");
    row.max = microseconds(of_size, "lat_max_ns");
    row.typical = microseconds(of_size, "lat_p50_ns");
    row.mean = microseconds(of_size, "lat_mean_ns");
    row.stdev = microseconds(of_size, "lat_stdev_ns");
    row.p99 = microseconds(of_size, "lat_p99_ns");
    row.p99_9 = microseconds(of_size, "lat_p99_9_ns");
    view.rows.push_back(row);
  }
  return view;
}

// perftest prints six decimals for small bandwidths, where two would be too few.
int decimals(const PerftestView& view, const PerftestRow& row) {
  return view.gbits && row.average < 0.1 ? 6 : 2;
}

// One document of --out_json, with one key per line.
std::string perftest_document(const PerftestView& view, const PerftestRow& row) {
  std::string title = view.title;
  std::ranges::replace(title, ' ', '_');
  std::string info = fmt::format("\"test\": {}", dump_json(title));
  for (const auto& [key, value] : view.facts.items()) info += fmt::format(",\n\"{}\": {}", key, dump_json(value));
  std::string results = fmt::format("\"MsgSize\": {:.0f},\n\"n_iterations\": {:.0f}", row.size, row.iterations);
  if (view.latency) {
    results += fmt::format(
        ",\n\"t_min\": {:.2f},\n\"t_max\": {:.2f},\n\"t_typical\": {:.2f},\n\"t_avg\": {:.2f},\n\"t_stdev\": {:.2f},"
        "\n\"percentile_99\": {:.2f},\n\"percentile_99.9\": {:.2f}",
        row.min, row.max, row.typical, row.mean, row.stdev, row.p99, row.p99_9);
  } else if (row.rate > 0) {
    const int digits = decimals(view, row);
    results += fmt::format(",\n\"BW_peak\": {:.{}f},\n\"BW_average\": {:.{}f},\n\"MsgRate\": {:.6f}", row.peak, digits,
                           row.average, digits, row.rate);
  }
  results += fmt::format(",\n\"simulated\": {}", view.simulated);
  return fmt::format("{{\n\"test_info\": {{\n{}\n}},\n\"results\": {{\n{}\n}}\n}}\n", info, results);
}

constexpr const char* kRule =
    "---------------------------------------------------------------------------------------\n";

// The text above the rows of a table. Views with the same text share a table.
std::string perftest_head(const PerftestView& view) {
  std::string head = fmt::format("{}                    {}\n", kRule, view.title);
  for (const PerftestFact& fact : kFacts) {
    const auto value = view.facts.find(fact.key);
    if (value == view.facts.end()) continue;
    const bool bytes = std::string_view(fact.key) == "Mtu" || std::string_view(fact.key) == "Max_inline_data";
    head += fmt::format(" {:<16}: {}{}\n", fact.label, plain_text(*value), bytes ? "[B]" : "");
  }
  if (view.simulated) head += " SIMULATED: no adapter was measured\n";
  head += kRule;
  if (view.latency) {
    return head +
           " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% "
           "percentile[usec]   99.9% percentile[usec] \n";
  }
  const char* const unit = view.gbits ? "Gb/sec" : "MB/sec";
  return head + fmt::format(" #bytes     #iterations    BW peak[{}]    BW average[{}]   MsgRate[Mpps]\n", unit, unit);
}

std::string perftest_line(const PerftestView& view, const PerftestRow& row) {
  if (view.latency) {
    return fmt::format(
        " {:<7.0f} {:.0f}          {:<7.2f}        {:<7.2f}      {:<7.2f}         {:<7.2f}     "
        " {:<7.2f}    {:<7.2f} "
        "    {:<7.2f}\n",
        row.size, row.iterations, row.min, row.max, row.typical, row.mean, row.stdev, row.p99, row.p99_9);
  }
  const int digits = decimals(view, row);
  return fmt::format(" {:<7.0f}    {:<10.0f}       {:<7.{}f}            {:<7.{}f}       {:<7.6f}\n", row.size,
                     row.iterations, row.peak, digits, row.average, digits, row.rate);
}

}  // namespace

std::optional<PerftestTest> perftest_test(std::string_view title) {
  std::string words(title);
  std::ranges::replace(words, ' ', '_');
  constexpr std::string_view kEnd = "_Test";
  if (!words.ends_with(kEnd)) return std::nullopt;
  const auto has = [&words](std::string_view part) { return words.find(part) != words.npos; };
  PerftestTest test;
  test.latency = has("_Latency_");
  if (!test.latency && !has("_BW_")) return std::nullopt;
  for (const TestWords& name : kTestWords) {
    std::string theirs(name.words);
    std::ranges::replace(theirs, ' ', '_');
    if (!words.starts_with(theirs + "_")) continue;
    const bool atomic = theirs.starts_with("Atomic");
    test.benchmark = test.latency ? "verb_latency" : atomic ? "atomic_rate" : name.kind;
    if (atomic) test.verb = name.kind;
    if (test.latency && !atomic) test.verb = name.kind.substr(0, name.kind.find('_'));
    test.bidirectional = has("_Bidirectional_");
    test.immediate = words.starts_with("RDMA_Write_Imm_");
    return test;
  }
  return std::nullopt;
}

std::string perftest_title(const Record& record) {
  const bool has_verb = std::ranges::find(kWithVerb, record.benchmark) != kWithVerb.end();
  const std::string kind = has_verb ? text_at(record.config, "verb") : record.benchmark;
  const auto* const found = std::ranges::find(kTestWords, kind, &TestWords::kind);
  if (found == kTestWords.end()) return "";
  const auto latency = record.result.find("latency");
  const bool times = latency != record.result.end() && latency->is_array() && !latency->empty();
  const auto is_set = [&record](const char* key) {
    const auto value = record.config.find(key);
    return value != record.config.end() && value->is_boolean() && value->get<bool>();
  };
  std::string title(found->words);
  if (is_set("write_with_imm")) title += "_Imm";
  if (times) return title + " Latency Test";
  if (is_set("bidirectional")) title += " Bidirectional";
  if (number_at(record.config, "post_list").value_or(1) > 1) title += " Post List";
  return title + " BW Test";
}

const PerftestFact* perftest_fact(std::string_view name) {
  const std::string wanted = normalized_name(name);
  const auto* const found =
      std::ranges::find_if(kFacts, [&](const PerftestFact& fact) { return normalized_name(fact.key) == wanted; });
  return found == kFacts.end() ? nullptr : found;
}

bool is_perftest_fact(std::string_view name) {
  const std::string wanted = normalized_name(name);
  return perftest_fact(name) != nullptr ||
         std::ranges::any_of(kOtherFacts, [&](std::string_view other) { return normalized_name(other) == wanted; });
}

std::span<const PerftestColumn> perftest_columns() {
  return kColumns;
}

std::string perftest_lines(const std::vector<const Record*>& records, PerftestForm form) {
  std::string out, head;
  std::set<std::string> unsupported;
  for (const Record* record : records) {
    if (record->status == RecordStatus::failed) continue;
    const auto view = perftest_view(*record);
    if (!view) {
      const std::string verb = text_at(record->config, "verb");
      unsupported.insert(record->benchmark + (verb.empty() ? "" : " --verb " + verb));
      continue;
    }
    if (form == PerftestForm::table && std::exchange(head, perftest_head(*view)) != head) out += head;
    for (const PerftestRow& row : view->rows) {
      out += form == PerftestForm::table ? perftest_line(*view, row) : perftest_document(*view, row);
    }
  }
  if (unsupported.empty()) return out;
  const std::string which = fmt::format("perftest has no test like {}", fmt::join(unsupported, ", "));
  if (out.empty()) fail("--view: {}; the views jsonl and csv export it", which);
  warn(which + ": skipped");
  return out;
}

}  // namespace verbscope
