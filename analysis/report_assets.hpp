// The files of the report page (analysis/report/), embedded at build time.
#pragma once

#include <string>

namespace verbscope {

struct ReportAssets {
  std::string page, style, script, echarts;
};

// Throws Error if the program was built without the chart library.
ReportAssets report_assets();

}  // namespace verbscope
