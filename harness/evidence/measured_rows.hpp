// Rows that others measured on hardware (configs/measured/*.csv), as rows of the published table's kind.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/published.hpp"
#include "common/json.hpp"

namespace verbscope {

inline constexpr const char* kMeasuredSchema = "verbscope.measured/1";

// A row that simulated figures are held against.
struct EvidenceRow {
  PublishedPoint point;           // `paper` is the set of a measured row, `where` its source
  Json columns = Json::object();  // of a measured row: its columns but value, source and those that are ignored
  Json curves = Json::array();    // of a measured row: {"along": COLUMN, "with": [COLUMN...]}, its form's
  bool by_shape = false;          // counts divided by the median of its source and cluster
  std::string not_run;            // the reason why it is not run; empty: it is
};

// The forms of configs/measured/forms.json. Throws Error, a line that says where.
class MeasuredForms {
 public:
  MeasuredForms();  // configs/measured/forms.json
  MeasuredForms(const Json& json, const std::string& where);

  // The rows of one file's text. Throws "where:LINE: ..." for a form that is not known (with the columns of those that
  // are), another number of cells than of columns, a value that is no number above 0.
  std::vector<EvidenceRow> rows(std::string_view text, const std::string& where) const;
  // The files of the sets that ship, beside forms.json.
  std::vector<std::filesystem::path> files() const;

 private:
  struct Run {
    Json when, options;
    std::string benchmark, metric, not_modelled;
  };
  struct Form {
    std::string set, file, cluster, value;
    std::vector<std::string> columns, ignored;
    Json curves;
    std::vector<Run> runs;
  };
  static Form read_form(const Json& json, const std::string& where);
  EvidenceRow make_row(const Form& form, const Json& cells, const std::string& where) const;

  std::vector<std::string> by_shape_;
  std::vector<Form> forms_;
  std::filesystem::path folder_;
};

}  // namespace verbscope
