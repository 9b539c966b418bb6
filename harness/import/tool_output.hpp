// Readers for the output of tools that are not part of this project: perftest, ucx_perftest and Intel PCM.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/perftest.hpp"
#include "common/json.hpp"
#include "common/record.hpp"
#include "counters/tool_log.hpp"

namespace verbscope {

// `text` without the characters of `blank` at both ends.
inline std::string_view trimmed(std::string_view text, std::string_view blank) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(blank)));
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

// Removes the first word from `text` and returns it. A word ends at one of `blank`. Empty at the end.
inline std::string_view take_word(std::string_view& text, std::string_view blank) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(blank)));
  const std::string_view word = text.substr(0, text.find_first_of(blank));
  text.remove_prefix(word.size());
  return word;
}

// A record of status `imported`. Its environment is added later, for the whole file.
struct Imported {
  Record record;
  std::string fabric = "verbs";
  std::string tool;
};

// Reads one tool's output line by line.
class ToolOutput {
 public:
  virtual ~ToolOutput() = default;
  // Reads a line and appends the records that it completes. Returns false if the line is not of this tool.
  virtual bool read_line(std::string_view line, std::vector<Imported>& out) = 0;
  // At the end of the file: appends the records that are still incomplete.
  virtual void finish(std::vector<Imported>& /*out*/) {}
};

// Reads perftest's tables and the documents of its --out_json.
class PerftestTable final : public ToolOutput {
 public:
  bool read_line(std::string_view line, std::vector<Imported>& out) override;

 private:
  struct Column {
    std::string key, unit;
  };
  bool read_title(std::string_view line);
  bool read_facts(std::string_view line);
  bool read_header(std::string_view line);
  bool read_row(std::string_view line, std::vector<Imported>& out);

  std::optional<PerftestTest> test_;
  Json facts_ = Json::object();  // by PerftestFact::key
  std::vector<Column> columns_;
};

// Converts a document of --out_json. Empty if it is not one, or has no size or no figure.
std::optional<Imported> perftest_record(const Json& document);

// Reads the table of ucx_perftest, and its CSV (-v).
class UcxOutput final : public ToolOutput {
 public:
  bool read_line(std::string_view line, std::vector<Imported>& out) override;

 private:
  bool read_fact(std::string_view line);
  bool read_row(const std::vector<double>& numbers, std::vector<Imported>& out) const;

  Json facts_ = Json::object();
  bool in_table_ = false, in_csv_ = false;
  bool latency_ = false;  // the times are latencies; else times per post
  double percentile_ = 50;
};

// Reads CSV files of Intel PCM's pcm-pcie and pcm-iio: one record per interval.
class PcmCsv final : public ToolOutput {
 public:
  // `tool`: "pcm-pcie" or "pcm-iio". `interval_s`: length of the intervals, unless the file contains another.
  PcmCsv(std::string tool, std::unique_ptr<ToolFormat> format, double interval_s);

  // Throws Error for a header with unknown columns.
  bool read_line(std::string_view line, std::vector<Imported>& out) override;
  void finish(std::vector<Imported>& out) override;

 private:
  std::string tool_;
  std::unique_ptr<ToolFormat> format_;
  double interval_s_;
  Sums sums_;  // of the current interval
  bool damaged_ = false;
  int interval_ = -1;  // counted from 0
};

// Parser for the JSON of perftest 4.5: names and words without quotes, a comma after the last member.
struct LooseJson {
  Json value;
  std::size_t length;  // length of its text
};

// Parses the object at the beginning of `text`. Empty if there is none or it is truncated. A word without quotes is a
// number, a Boolean or a string. The last of several members with one name counts.
std::optional<LooseJson> read_loose_json(std::string_view text);

}  // namespace verbscope
