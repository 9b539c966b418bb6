#include "analysis/report.hpp"

#include "analysis/report_assets.hpp"
#include "analysis/report_data.hpp"

namespace verbscope {
namespace {

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

std::string report_page(const std::vector<const Record*>& records, std::size_t most_record_bytes) {
  const std::vector<PublishedPoint> published = load_published();
  Json data = report_data(compare_records(records, published), published);
  std::string lines;
  for (const Record* record : records) {
    lines += script_json(to_json(*record)) + "\n";
    if (lines.size() <= most_record_bytes) continue;
    lines.clear();
    data["records_left_out"] =
        fmt::format("The records are larger than {} MiB: they are in the results files only", most_record_bytes >> 20);
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
