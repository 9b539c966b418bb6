#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "common/text.hpp"
#include "counters/tool_log.hpp"
#include "harness/import/tool_output.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kUcxBlank = " \t|";

// The numbers of a row; empty if it contains anything else. -N groups digits by commas or apostrophes.
std::vector<double> numbers_in(std::string_view text, std::string_view separators) {
  std::vector<double> out;
  while (true) {
    std::string word(take_word(text, separators));
    if (word.empty()) return out;
    if (separators.find(',') == separators.npos) std::erase(word, ',');
    std::erase(word, '\'');
    const auto value = number_from<double>(word);
    if (!value || !std::isfinite(*value)) return {};
    out.push_back(*value);
  }
}

}  // namespace

bool UcxOutput::read_line(std::string_view line, std::vector<Imported>& out) {
  if (line.starts_with("+--")) return true;
  if (line.starts_with('|')) return read_fact(trimmed(line, kUcxBlank));
  if (line.find("iterations,") != line.npos && line.find("overall_mr") != line.npos) {
    in_csv_ = true;
    return true;
  }
  if (in_table_ && line.starts_with("[thread")) return true;  // an intermediate report
  constexpr std::string_view kFinal = "Final:";
  if (in_table_ && line.starts_with(kFinal)) return read_row(numbers_in(line.substr(kFinal.size()), kUcxBlank), out);
  if (!in_csv_) return false;
  // Names of batch files may precede the numbers.
  const Fields fields = split_fields(line);
  if (fields.size() < 8) return false;
  std::string numbers;
  for (auto field = fields.end() - 8; field != fields.end(); ++field) numbers += std::string(*field) + ",";
  return read_row(numbers_in(numbers, ","), out);
}

bool UcxOutput::read_fact(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kFacts{{{"API:", "api"},
                                                                            {"Test:", "test"},
                                                                            {"Data layout:", "data_layout"},
                                                                            {"Send memory:", "send_memory"},
                                                                            {"Recv memory:", "recv_memory"},
                                                                            {"Message size:", "size"}}};
  for (const auto& [begin, key] : kFacts) {
    if (!line.starts_with(begin)) continue;
    const std::string_view value = trimmed(line.substr(begin.size()), kUcxBlank);
    if (key == kFacts[0].second) facts_ = Json::object();  // the first line of a header
    const std::vector<double> size = numbers_in(value, kUcxBlank);
    facts_[key] =
        std::string_view(key) == "size" && size.size() == 1 ? Json(std::llround(size[0])) : Json(std::string(value));
    in_table_ = false;
    return true;
  }
  if (line.starts_with("AM header size:")) return true;
  if (line.find("bandwidth (MB/s)") != line.npos) {
    latency_ = line.find("latency (usec)") != line.npos;
    return true;
  }
  if (line.find("# iterations") == line.npos) return false;
  in_table_ = true;
  if (const std::size_t at = line.find("%ile"); at != line.npos) {
    const std::size_t begin = line.find_last_of(kUcxBlank, at) + 1;
    std::from_chars(line.data() + begin, line.data() + at, percentile_);
  }
  return true;
}

// Columns: iterations; times in us; bandwidth in MiB/s; messages per second. With one thread: percentile, average and
// overall for the times, the latter two for the others. With several threads: overall figures only.
bool UcxOutput::read_row(const std::vector<double>& numbers, std::vector<Imported>& out) const {
  if (numbers.size() != 8 && numbers.size() != 4) return false;
  const bool all = numbers.size() == 8;
  Imported imported{.record = {}, .tool = "ucx_perftest"};
  Record& record = imported.record;
  record.benchmark = "ucx_perftest";
  record.status = RecordStatus::imported;
  record.config = facts_;
  if (record.config.empty()) record.config["tool"] = "ucx_perftest";
  Json& result = record.result;
  result["rate_mops"] = numbers.back() / 1e6;
  const double bytes = numbers[all ? 5 : 2] * 1024 * 1024;
  result["bandwidth_gbit_per_s"] = bytes * 8 / 1e9;
  result["bandwidth_mb_per_s"] = bytes / 1e6;
  result["ops"] = std::llround(numbers[0]);
  const std::string what = latency_ ? "lat" : "post";
  if (all && std::abs(percentile_ - 50) < 1e-9) result[what + "_p50_ns"] = numbers[1] * 1000;
  if (all && std::abs(percentile_ - 99) < 1e-9) result[what + "_p99_ns"] = numbers[1] * 1000;
  result[what + "_mean_ns"] = numbers[all ? 3 : 1] * 1000;
  out.push_back(std::move(imported));
  return true;
}

}  // namespace verbscope
