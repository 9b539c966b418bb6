// Reads perftest's tables and the documents of its --out_json.
#pragma once

#include <optional>
#include <string>

#include "analysis/perftest.hpp"
#include "harness/import/tool_output.hpp"

namespace verbscope {

class PerftestTable final : public ToolOutput {
 public:
  bool take(std::string_view line, std::vector<Imported>& out) override;

 private:
  struct Column {
    std::string key, unit;
  };
  bool take_title(std::string_view line);
  bool take_facts(std::string_view line);
  bool take_header(std::string_view line);
  bool take_row(std::string_view line, std::vector<Imported>& out);

  std::optional<PerftestTest> test_;
  Json facts_ = Json::object();  // by PerftestFact::key
  std::vector<Column> columns_;
};

// Converts a document of --out_json. Empty if it is not one, or has no size or no figure.
std::optional<Imported> perftest_record(const Json& document);

}  // namespace verbscope
