// Rows measured on hardware (configs/measured/*.csv), converted to rows of the published table.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/published.hpp"
#include "common/json.hpp"

namespace verbscope {

inline constexpr const char* kMeasuredSchema = "verbscope.measured/1";

// A published or measured row to compare simulated figures with.
struct EvidenceRow {
  PublishedPoint point;           // `paper` is the set of a measured row, `where` its source
  Json columns = Json::object();  // measured rows: all columns except value, source and ignored ones
  Json curves = Json::array();    // measured rows: the form's {"along": COLUMN, "with": [COLUMN...]}
  bool by_shape = false;          // divided by the median of its group (shape_group)
  std::string not_run;            // why it cannot run; empty if it can
};

// The column layouts of measured files, from configs/measured/forms.json. Throws Error with the place of a mistake.
class MeasuredForms {
 public:
  MeasuredForms();  // configs/measured/forms.json
  MeasuredForms(const Json& json, const std::string& where);

  // The rows of one file's text. Throws Error "where:LINE: ..." for unknown columns (lists the known ones), for a line
  // with another number of cells, and for a value that is no number above 0.
  std::vector<EvidenceRow> rows(std::string_view text, const std::string& where) const;
  // The files of the installed sets, in the folder of forms.json.
  std::vector<std::filesystem::path> files() const;

 private:
  struct Run {
    Json when, options;
    std::string benchmark, metric, cluster;
    Json profile;      // values of parameters of the cluster's profile: {"wire.mtu_bytes": 2048}
    double scale = 1;  // the value of the row times this is in the unit of the metric
    bool by_shape = false;
    std::string not_modelled;
  };
  struct Form {
    std::string set, file, cluster, value;
    std::vector<std::string> columns, ignored;
    Json curves;
    std::vector<Run> runs;
  };
  static Form read_form(const Json& json, const std::string& where);
  EvidenceRow make_row(const Form& form, const Json& cells, const std::string& where) const;

  std::vector<Form> forms_;
  std::filesystem::path folder_;
};

}  // namespace verbscope
