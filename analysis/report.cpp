#include "analysis/report.hpp"

#include "analysis/report_assets.hpp"
#include "analysis/report_data.hpp"

namespace verbscope {
namespace {

// JSON that can stand in a script element: no "<" begins a tag or a comment there, and it reads back the same.
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

// Puts `text` in the place of `mark`, which the page has once.
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
  // Marks are filled in from the end on: text that was filled in is never searched for the next mark.
  fill(page, "@SCRIPT@", assets.script);
  fill(page, "@ECHARTS@", assets.echarts);
  fill(page, "@RECORDS@", lines);
  fill(page, "@DATA@", script_json(data));
  fill(page, "@CSS@", assets.style);
  return page;
}

}  // namespace verbscope
