#include "analysis/views.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "analysis/csv.hpp"
#include "analysis/perftest_form.hpp"
#include "analysis/points.hpp"
#include "analysis/where.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

std::string cell(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

// A row of perftest's table. Figures that the record lacks are 0, like values that perftest was not asked for.
struct PerftestRow {
  double size = 0, iterations = 0;
  double peak = 0, average = 0, rate = 0;                                            // of a bandwidth test
  double least = 0, most = 0, typical = 0, mean = 0, stdev = 0, p99 = 0, p99_9 = 0;  // us, of a latency test
};

// A record as perftest would print it: the facts above the table, and one row per size.
struct PerftestView {
  std::string title;
  bool simulated = false, latency = false, gbits = false;
  Json facts = Json::object();  // by the keys of perftest_facts()
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
  for (const PerftestFact& fact : perftest_facts()) {
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
    row.least = microseconds(of_size, "lat_min_ns");
    row.most = microseconds(of_size, "lat_max_ns");
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
        row.least, row.most, row.typical, row.mean, row.stdev, row.p99, row.p99_9);
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
  for (const PerftestFact& fact : perftest_facts()) {
    const auto value = view.facts.find(fact.key);
    if (value == view.facts.end()) continue;
    const bool bytes = std::string_view(fact.key) == "Mtu" || std::string_view(fact.key) == "Max_inline_data";
    head += fmt::format(" {:<16}: {}{}\n", fact.label, cell(*value), bytes ? "[B]" : "");
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
        row.size, row.iterations, row.least, row.most, row.typical, row.mean, row.stdev, row.p99, row.p99_9);
  }
  const int digits = decimals(view, row);
  return fmt::format(" {:<7.0f}    {:<10.0f}       {:<7.{}f}            {:<7.{}f}       {:<7.6f}\n", row.size,
                     row.iterations, row.peak, digits, row.average, digits, row.rate);
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
           {"sweep", harness_text(record, "sweep")},
           {"label", label_of(record)},
           {"status", to_string(record.status)},
           {"reason", record.reason}};
  flatten(record.config, "config", out);
  flatten(record.result, "result", out);
  return out;
}

}  // namespace

std::string perftest_lines(const std::vector<const Record*>& records, PerftestForm form) {
  std::string out, head;
  std::set<std::string> refused;
  for (const Record* record : records) {
    if (record->status == RecordStatus::failed) continue;
    const auto view = perftest_view(*record);
    if (!view) {
      const std::string verb = text_at(record->config, "verb");
      refused.insert(record->benchmark + (verb.empty() ? "" : " --verb " + verb));
      continue;
    }
    if (form == PerftestForm::table && std::exchange(head, perftest_head(*view)) != head) out += head;
    for (const PerftestRow& row : view->rows) {
      out += form == PerftestForm::table ? perftest_line(*view, row) : perftest_document(*view, row);
    }
  }
  if (refused.empty()) return out;
  const std::string which = fmt::format("perftest has no test like {}", fmt::join(refused, ", "));
  if (out.empty()) fail("--view: {}; the views jsonl and csv export it", which);
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
