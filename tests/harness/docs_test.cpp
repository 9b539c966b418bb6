// The documentation shows what the commands in it print.
#include <algorithm>
#include <sstream>

#include "analysis/points.hpp"
#include "harness/sweep/sweep.hpp"
#include "tests/harness/program.hpp"

namespace verbscope {
namespace {

const std::string kRoot = VERBSCOPE_SOURCE_DIR "/";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The cells between the bars of a line of a table, each with single spaces.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    if (word == "|") {
      cells.emplace_back();
    } else {
      cells.back() += (cells.back().empty() ? "" : " ") + word;
    }
  }
  return cells;
}

// README leaves out two of the eight columns of `compare`: the fifth (writes) and the seventh (bytes).
std::vector<std::string> shortened(const std::string& line) {
  std::vector<std::string> cells = cells_of(line);
  if (cells.size() != 8) return {};
  cells.erase(cells.begin() + 6);
  cells.erase(cells.begin() + 4);
  return cells;
}

TEST(Docs, ReadmeShowsTheOutputOfQuickstart) {
  TempFolder folder;
  const std::string results = folder.file("results.jsonl");
  for (const char* hosts : {"sim:cib", "sim:cx3"}) {
    ASSERT_EQ(run({"run", "quickstart", "--hosts", hosts, "--out", results}).end, "exit status 0");
  }
  std::vector<std::string> printed;
  for (const std::string& line : lines_of(run({"compare", results}).out)) {
    if (line.ends_with(" calibrated")) printed.push_back(line);
  }
  const std::vector<std::string> readme = lines_of(read_text(kRoot + "README.md"));
  std::size_t row = 0;
  for (std::size_t i = 0; i < readme.size(); ++i) {
    if (!readme[i].ends_with(" calibrated")) continue;
    ASSERT_LT(row, printed.size());
    EXPECT_EQ(cells_of(readme[i]), shortened(printed[row]))
        << "README.md:" << i + 1 << ": this is printed now, write it there without writes/op and PCIe bytes/op:\n"
        << printed[row];
    ++row;
  }
  EXPECT_EQ(row, 5u);
}

TEST(Docs, ExplainExampleNamesAPointOfItsSweep) {
  const std::vector<std::string> lines = lines_of(read_text(kRoot + "docs/analysis.md"));
  const auto example = std::ranges::find_if(
      lines, [](const std::string& line) { return line.find("explain results/local/send_grid") != std::string::npos; });
  ASSERT_NE(example, lines.end());
  const std::string id = example->substr(example->rfind(' ') + 1);
  const std::string path = kRoot + "configs/sweeps/send_grid.json";
  std::vector<std::string> ids;
  for (const Point& point : expand_sweep(parse_sweep(read_text(path), path), "sim:cib")) {
    Record record = fake_record("sim:cib");
    record.config["point"] = point_identity(point, "sim:cib");
    ids.push_back(point_id(record));
  }
  EXPECT_EQ(std::ranges::count_if(ids, [&id](const std::string& each) { return each.starts_with(id); }), 1)
      << "docs/analysis.md:" << example - lines.begin() + 1 << ": --point " << id;
}

}  // namespace
}  // namespace verbscope
