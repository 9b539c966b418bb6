#include "analysis/report.hpp"
#include "common/error.hpp"

// The assembler includes a file and defines symbols for its first byte and for the byte after its last one.
#define VERBSCOPE_EMBED(name, path)                                                                              \
  __asm__(".pushsection .rodata\n.global verbscope_asset_" #name "\nverbscope_asset_" #name ":\n.incbin \"" path \
          "\"\n.global verbscope_asset_" #name "_end\nverbscope_asset_" #name "_end:\n.byte 0\n.popsection\n");  \
  extern "C" const char verbscope_asset_##name[];                                                                \
  extern "C" const char verbscope_asset_##name##_end[]

VERBSCOPE_EMBED(page, VERBSCOPE_REPORT_DIR "/page.html");
VERBSCOPE_EMBED(style, VERBSCOPE_REPORT_DIR "/page.css");
VERBSCOPE_EMBED(data, VERBSCOPE_REPORT_DIR "/data.js");
VERBSCOPE_EMBED(curves, VERBSCOPE_REPORT_DIR "/curves.js");
VERBSCOPE_EMBED(legend, VERBSCOPE_REPORT_DIR "/legend.js");
VERBSCOPE_EMBED(charts, VERBSCOPE_REPORT_DIR "/charts.js");
VERBSCOPE_EMBED(curve_charts, VERBSCOPE_REPORT_DIR "/curve_charts.js");
VERBSCOPE_EMBED(drawing, VERBSCOPE_REPORT_DIR "/drawing.js");
VERBSCOPE_EMBED(table, VERBSCOPE_REPORT_DIR "/table.js");
VERBSCOPE_EMBED(main, VERBSCOPE_REPORT_DIR "/main.js");
VERBSCOPE_EMBED(echarts, VERBSCOPE_CHART_LIBRARY);

#define VERBSCOPE_ASSET(name) std::string(verbscope_asset_##name, verbscope_asset_##name##_end)

namespace verbscope {

ReportAssets report_assets() {
  const std::string charts = VERBSCOPE_ASSET(echarts);
  if (charts.empty()) {
    fail(
        "this verbscope was built without the chart library of the report: run analysis/report/vendor/fetch.sh (needs "
        "npm) and build again");
  }
  return {.page = VERBSCOPE_ASSET(page),
          .style = VERBSCOPE_ASSET(style),
          .script = VERBSCOPE_ASSET(data) + VERBSCOPE_ASSET(curves) + VERBSCOPE_ASSET(legend) +
                    VERBSCOPE_ASSET(charts) + VERBSCOPE_ASSET(curve_charts) + VERBSCOPE_ASSET(drawing) +
                    VERBSCOPE_ASSET(table) + VERBSCOPE_ASSET(main),
          .echarts = charts};
}

}  // namespace verbscope
