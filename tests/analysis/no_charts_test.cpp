// The report of a verbscope that was built without the chart library: it is compiled here with an empty file in its
// place.
#include <gmock/gmock.h>

#include "analysis/report.hpp"
#include "common/error.hpp"

namespace verbscope {
namespace {

TEST(Report, MissingChartLibraryIsAOneLineError) {
  try {
    report_assets();
    FAIL() << "there are assets";
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_THAT(line, testing::HasSubstr("built without the chart library of the report"));
    EXPECT_THAT(line, testing::HasSubstr("analysis/report/vendor/fetch.sh"));
    EXPECT_EQ(line.find('\n'), line.npos);
  }
}

}  // namespace
}  // namespace verbscope
