// The files of the report's page (analysis/report/), as they were when the program was built.
#pragma once

#include <string>

namespace verbscope {

struct ReportAssets {
  std::string page, style, script, echarts;
};

// Throws Error when the program was built without the chart library.
ReportAssets report_assets();

}  // namespace verbscope
