#include "analysis/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "analysis/axis.hpp"
#include "analysis/explain.hpp"
#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "analysis/statistics.hpp"
#include "analysis/text_table.hpp"

namespace verbscope {
namespace {

constexpr std::array kByteKinds = {"MMIO writes", "DMA data read", "DMA data written", "headers to the NIC",
                                   "headers to the host"};
constexpr std::array kEventNames = {"lines read", "lines written", "MMIO writes"};

Json bytes_by_kind(const Record& record) {
  const std::optional<PciePerOp> events = events_per_op(record);
  if (!events) return nullptr;
  const std::optional<Prediction> prediction = prediction_of(record);
  const double doorbell = static_cast<double>((prediction ? prediction->wire.doorbell_bytes : Bytes(8)).value);
  const double mmio = events->mmio_wc_lines * static_cast<double>(kCacheLine.value) + events->mmio_doorbells * doorbell;
  return Json{mmio, events->payload_bytes_to_nic - mmio, events->payload_bytes_to_host,
              events->bytes_to_nic - events->payload_bytes_to_nic,
              events->bytes_to_host - events->payload_bytes_to_host};
}

// The histograms of a result: one for the point, or one per size.
Json latencies(const Record& record) {
  Json out = Json::array();
  const auto sizes = record.result.find("latency");
  if (sizes == record.result.end() || !sizes->is_array()) return out;
  for (const Json& size : *sizes) {
    if (!size.is_object() || !size.contains("lat_histogram_ns")) continue;
    Json histogram = Json::array();
    for (const Json& bucket : size.at("lat_histogram_ns")) {
      const bool whole = bucket.is_array() && bucket.size() == 2 && bucket[0].is_number() && bucket[1].is_number();
      if (whole) histogram.push_back(bucket);
    }
    const std::string name = fmt::format("{:g} B", number_at(size, "size").value_or(0));
    out.push_back(Json{{"name", name}, {"histogram", std::move(histogram)}});
  }
  return out;
}

// Rounds to the hundredth of a percent that the page shows, because the loads of thousands of points are most of its
// data.
double shown_load(const Load& load) {
  return std::round(load.utilisation * 1e4) / 1e4;
}

// One array per load: [resource as an index of resource_words, load, load of the busiest client].
Json loads_json(const Loads& loads) {
  Json out = Json::array();
  for (const Load& load : loads.server) {
    const auto peer = std::ranges::find(loads.peers, load.resource, &Load::resource);
    out.push_back(Json{static_cast<int>(load.resource), shown_load(load),
                       peer == loads.peers.end() ? Json() : Json(shown_load(*peer))});
  }
  return out;
}

Json resource_words() {
  Json out = Json::array();
  for (const ResourceFacts& each : all_resources()) out.push_back(each.words);
  return out;
}

// interval_factor for 1, 2, ... degrees of freedom, for means over the points that the page's filter selects. The last
// entry is within 1 % of the limit and stands for all larger ones.
Json interval_factors() {
  constexpr std::size_t kMaxFreedom = 150;
  Json out = Json::array();
  for (std::size_t freedom = 1; freedom <= kMaxFreedom; ++freedom) out.push_back(interval_factor(freedom));
  return out;
}

void add_explanation(const Record& record, Json& point) {
  const Explanation it = explain(record);
  point["limit"] = it.limit_words();
  point["sentence"] = it.limit_sentence();
  point["loads"] = loads_json(it.loads);
  point["advice"] = Json::array();
  for (const Advice& advice : it.advice)
    point["advice"].push_back(fmt::format("{} {}{}{}", gain_text(advice.factor), advice.change,
                                          advice.at_least ? " or more" : "",
                                          advice.other_payload ? ", if the payload may change" : ""));
}

// Results that a chart can show: rates, latencies and counts per operation.
bool is_charted(const std::string& key) {
  constexpr std::array kEnds = {"_mops", "_gbit_per_s", "_per_op", "lat_mean_ns", "lat_p50_ns", "lat_p99_ns"};
  return std::ranges::any_of(kEnds, [&key](const char* end) { return key.ends_with(end); });
}

// The charted values of a point. If its latency was measured at one size, includes the latency's values.
Json charted_values(const Record& record) {
  Json values = Json::object();
  const auto add = [&values](const Json& from) {
    for (const auto& [key, value] : from.items()) {
      if (is_charted(key) && number_at(from, key)) values[key] = value;
    }
  };
  add(record.result);
  if (const Json* const latency = only_latency(record)) add(*latency);
  return values;
}

// The options that any point of a benchmark set, so that all points of a benchmark show the same options.
using KeysByBenchmark = std::map<std::string, std::vector<std::string>>;

KeysByBenchmark option_keys_by_benchmark(const std::vector<CompareRow>& rows) {
  std::map<std::string, std::vector<const Record*>> records;
  for (const CompareRow& row : rows) records[row.record->benchmark].push_back(row.record);
  KeysByBenchmark keys;
  for (const auto& [benchmark, own] : records) keys[benchmark] = option_keys(own);
  return keys;
}

Json point_json(const CompareRow& row, const std::vector<std::string>& keys, const FabricNames& fabrics) {
  const Record& record = *row.record;
  Json options = Json::object();
  for (const std::string& key : keys) options[key] = option_text(record, key);
  Json point{{"id", point_id(record)},
             {"benchmark", record.benchmark},
             {"title", point_title(record)},
             {"fabric", row.fabric},
             {"cluster", fabrics.name_of(record)},
             {"file", record.file},
             {"label", label_of(record)},
             {"figure", figure_of(record)},
             {"along", harness_text(record, "along")},
             {"simulated", row.simulated},
             {"failed", record.reason},
             {"options", options},
             {"rate", optional_json(row.rate_mops)},
             {"bound", optional_json(row.bound_mops)},
             {"bound_by", row.binding},
             {"main", main_result_key(record)},
             {"values", charted_values(record)}};
  point["bytes"] = bytes_by_kind(record);
  point["events"] = Json::array();
  for (std::size_t i = 0; i < kEventNames.size(); ++i) {
    point["events"].push_back(Json{optional_json(row.events[i].measured), optional_json(row.events[i].modelled)});
  }
  point["residuals"] = Json::array();
  for (const Residual& residual : row.residuals) {
    point["residuals"].push_back(
        fmt::format("{:+.3g} {} per operation: {}", residual.per_op, residual.event, residual.meaning));
  }
  point["latency"] = latencies(record);
  point["published"] = nullptr;
  if (row.published != nullptr) {
    point["published"] = Json{{"value", row.published->value},
                              {"where", row.published->where},
                              {"use", row.published->calibration ? "calibrated" : "predicted"},
                              {"metric", row.published->run.result_key},
                              {"compare", to_string(row.published->comparison)},
                              {"deviation", optional_json(row.deviation_percent)}};
  }
  point["loads"] = point["advice"] = Json::array();
  point["limit"] = point["sentence"] = "";
  if (record.status != RecordStatus::failed) add_explanation(record, point);
  return point;
}

// Axis titles for all keys that the page can show.
Json titles(const Json& points, const Json& figures) {
  std::set<std::string> keys;
  for (const Json& point : points) {
    for (const char* part : {"options", "values"}) {
      for (const auto& [key, value] : point.at(part).items()) keys.insert(key);
    }
  }
  for (const Json& figure : figures) {
    for (const Json& key : figure.at("results")) keys.insert(key.get<std::string>());
  }
  Json out = Json::object();
  for (const std::string& key : keys) out[key] = axis_title(key);
  return out;
}

Json provenance(const std::vector<CompareRow>& rows) {
  std::map<std::string, std::size_t> known;
  Json out = Json::array();
  for (const CompareRow& row : rows) {
    Json place = row.record->environment;
    const std::string time = text_at(place, "time_utc");
    place.erase("time_utc");
    place.erase("command_line");
    place.erase("options_set");
    place.erase("harness");  // when each point ran
    const auto [at, fresh] = known.try_emplace(point_key(place), out.size());
    if (fresh) {
      place["points"] = 0;
      place["from"] = time;
      place["to"] = time;
      out.push_back(place);
    }
    Json& entry = out[at->second];
    entry["points"] = entry["points"].get<int>() + 1;
    entry["from"] = std::min(entry["from"].get<std::string>(), time);
    entry["to"] = std::max(entry["to"].get<std::string>(), time);
  }
  return out;
}

std::string limits_sentence(const Json& points) {
  std::map<std::string, int> counts;
  for (const Json& point : points) {
    if (!point.at("failed").get<std::string>().empty()) continue;
    ++counts[point.at("limit").get<std::string>()];
  }
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &std::pair<std::string, int>::second);
  std::string text;
  for (const auto& [limit, count] : sorted) text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", limit, count);
  return "Limits: " + text + ".";
}

Json summary(const std::vector<CompareRow>& rows, const Json& points) {
  const auto failed =
      std::ranges::count_if(rows, [](const CompareRow& row) { return row.record->status == RecordStatus::failed; });
  const auto simulated = std::ranges::count_if(rows, &CompareRow::simulated);
  Json out{fmt::format("{} points, {} of them simulated, {} failed.", rows.size(), simulated, failed)};
  out.push_back(limits_sentence(points));
  std::map<std::string, const CompareRow*> fastest;
  const CompareRow* worst = nullptr;
  std::size_t published = 0, differ = 0, decided = 0;
  for (const CompareRow& row : rows) {
    const CompareRow*& best = fastest[row.record->benchmark];
    if (row.rate_mops && (best == nullptr || *row.rate_mops > *best->rate_mops)) best = &row;
    if (row.deviation_percent) {
      ++published;
      if (worst == nullptr || std::abs(*row.deviation_percent) > std::abs(*worst->deviation_percent)) worst = &row;
    }
    differ += row.residuals.empty() ? 0 : 1;
    decided += std::ranges::any_of(row.residuals, &Residual::decided) ? 1 : 0;
  }
  for (const auto& [benchmark, row] : fastest) {
    if (row == nullptr) continue;
    out.push_back(fmt::format("Fastest of {}: {} {}Mops, {} on {}.", benchmark, number_text(row->rate_mops),
                              row->simulated ? "simulated " : "", point_title(*row->record), row->fabric));
  }
  if (worst != nullptr) {
    out.push_back(fmt::format("{} points have a published figure; the farthest from it is {} by {} %.", published,
                              worst->published->id, percent_text(*worst->deviation_percent)));
  }
  if (differ > 0) {
    out.push_back(fmt::format(
        "At {} points counted and modelled PCIe events differ; for {} of them the evidence names the cause.", differ,
        decided));
  }
  return out;
}

// JSON for a script element: "<" is escaped so that no tag or comment begins in it. Parses back to the same value.
std::string script_json(const Json& json) {
  const std::string text = dump_json(json);
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

// Replaces `mark`, which occurs once in the page.
void fill(std::string& page, std::string_view mark, const std::string& text) {
  const std::size_t at = page.find(mark);
  if (at == std::string::npos) fail("the page of the report has no {}", mark);
  page.replace(at, mark.size(), text);
}

}  // namespace

Json report_data(const std::vector<CompareRow>& rows, const std::vector<PublishedPoint>& published) {
  const KeysByBenchmark keys = option_keys_by_benchmark(rows);
  std::vector<const Record*> records;
  for (const CompareRow& row : rows) records.push_back(row.record);
  const FabricNames fabrics(records);
  Json points = Json::array();
  for (const CompareRow& row : rows) points.push_back(point_json(row, keys.at(row.record->benchmark), fabrics));
  Json figures = paper_figures(rows, published);
  Json out{{"titles", titles(points, figures)},
           {"summary", summary(rows, points)},
           {"provenance", provenance(rows)},
           {"byte_kinds", kByteKinds},
           {"event_groups", kEventNames},
           {"resources", resource_words()},
           {"confidence_percent", 100 * kFigureConfidence},
           {"interval_factors", interval_factors()}};
  out["figures"] = std::move(figures);
  out["points"] = std::move(points);
  return out;
}

std::string report_page(const std::vector<const Record*>& records, std::size_t max_record_bytes) {
  const std::vector<PublishedPoint> published = load_published();
  Json data = report_data(compare_records(records, published), published);
  std::string lines;
  for (const Record* record : records) {
    lines += script_json(to_json(*record)) + "\n";
    if (lines.size() <= max_record_bytes) continue;
    lines.clear();
    data["records_left_out"] =
        fmt::format("The records are larger than {} MiB: they are in the results files only", max_record_bytes >> 20);
    break;
  }
  const ReportAssets assets = report_assets();
  std::string page = assets.page;
  // Fills the marks from the end of the page, so that inserted text is never searched for a mark.
  fill(page, "@SCRIPT@", assets.script);
  fill(page, "@ECHARTS@", assets.echarts);
  fill(page, "@RECORDS@", lines);
  fill(page, "@DATA@", script_json(data));
  fill(page, "@CSS@", assets.style);
  return page;
}

}  // namespace verbscope
