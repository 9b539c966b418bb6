#include "analysis/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/error.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kGroupSeparator = " | ";
constexpr std::size_t kNarrowText = 20;  // minimum width of a column of texts
constexpr std::size_t kIndent = 4;

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string csv_cell(const std::string& text) {
  std::string cell = for_terminal(text);
  if (!cell.empty() && std::string_view("=+-@").find(cell.front()) != std::string_view::npos &&
      !number_from<double>(cell)) {
    cell.insert(cell.begin(), '\'');
  }
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

void TextTable::add_row(std::vector<std::string> cells) {
  add_note(std::move(cells), "");
}

void TextTable::add_note(std::vector<std::string> cells, const std::string& text) {
  for (std::string& cell : cells) cell = on_one_line(cell);
  lines_.push_back({std::move(cells), on_one_line(text)});
}

void TextTable::add_heading(const std::string& text) {
  lines_.push_back({{}, on_one_line(text)});
}

std::vector<TextTable::Column> TextTable::columns() const {
  std::vector<Column> all;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const TableColumn& column : groups_[group].columns) all.push_back({group, &column});
  }
  return all;
}

std::vector<std::size_t> TextTable::cell_widths() const {
  std::vector<std::size_t> widths;
  for (const auto& [group, column] : columns()) {
    std::size_t width = std::max(column->header.size(), groups_[group].header.empty() ? column->top.size() : 0);
    for (const Line& line : lines_) {
      if (widths.size() < line.cells.size()) width = std::max(width, line.cells[widths.size()].size());
    }
    widths.push_back(width);
  }
  return widths;
}

// The last column of a group is widened if the group's header needs more room.
TextTable::Part TextTable::part_of(std::vector<std::size_t> chosen, const std::vector<std::size_t>& natural) const {
  const std::vector<Column> all = columns();
  Part part{std::move(chosen), {}};
  std::size_t group_width = 0;
  for (std::size_t i = 0; i < part.columns.size(); ++i) {
    const std::size_t group = all[part.columns[i]].group;
    const bool begins = i == 0 || all[part.columns[i - 1]].group != group;
    const bool ends = i + 1 == part.columns.size() || all[part.columns[i + 1]].group != group;
    group_width = (begins ? 0 : group_width + 1) + natural[part.columns[i]];
    part.widths.push_back(natural[part.columns[i]]);
    const std::size_t header = groups_[group].header.size();
    if (ends && header > group_width) part.widths.back() += header - group_width;
  }
  return part;
}

std::string TextTable::separator(const Part& part, std::size_t i) const {
  const std::vector<Column> all = columns();
  if (i == 0) return "";
  return all[part.columns[i]].group == all[part.columns[i - 1]].group ? " " : std::string(kGroupSeparator);
}

std::size_t TextTable::width_of(const Part& part) const {
  std::size_t width = 0;
  for (std::size_t i = 0; i < part.columns.size(); ++i) width += separator(part, i).size() + part.widths[i];
  return width;
}

std::vector<TextTable::Part> TextTable::parts(std::size_t width) const {
  std::vector<std::size_t> natural = cell_widths(), everything(natural.size());
  std::iota(everything.begin(), everything.end(), std::size_t{0});
  const auto total = [&] { return width_of(part_of(everything, natural)); };
  if (width == 0 || total() <= width) return {part_of(everything, natural)};
  // Columns of texts shrink first, beginning with the widest.
  const std::vector<Column> all = columns();
  while (total() > width) {
    std::size_t longest = all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_longer = longest == all.size() || natural[i] > natural[longest];
      if (all[i].words->left && natural[i] > kNarrowText && is_longer) longest = i;
    }
    if (longest == all.size()) break;
    natural[longest] = std::max(kNarrowText, natural[longest] - std::min(natural[longest], total() - width));
  }
  if (total() <= width) return {part_of(everything, natural)};
  return split(width, cell_widths(), groups_.front().columns.size());
}

std::vector<TextTable::Part> TextTable::split(std::size_t width, const std::vector<std::size_t>& natural,
                                              std::size_t key) const {
  std::vector<Part> done;
  std::vector<std::size_t> common(key);
  std::iota(common.begin(), common.end(), std::size_t{0});
  const std::size_t room = width - std::min(width, width_of(part_of(common, natural)) + kGroupSeparator.size());
  std::vector<std::size_t> widths = natural;
  for (std::size_t i = key; i < widths.size(); ++i) {
    if (columns()[i].words->left) widths[i] = std::min(widths[i], std::max(room, kNarrowText));
  }
  std::vector<std::size_t> current = common;
  const auto fits = [&](const std::vector<std::size_t>& more) {
    std::vector<std::size_t> joined = current;
    joined.insert(joined.end(), more.begin(), more.end());
    return current.size() == key && more.size() == 1 ? true : width_of(part_of(joined, widths)) <= width;
  };
  const auto take = [&](const std::vector<std::size_t>& more) {
    if (!fits(more)) done.push_back(part_of(std::exchange(current, common), widths));
    current.insert(current.end(), more.begin(), more.end());
  };
  std::size_t next = key;
  for (std::size_t group = 1; group < groups_.size(); ++group) {
    std::vector<std::size_t> own(groups_[group].columns.size());
    std::iota(own.begin(), own.end(), next);
    next += own.size();
    // Keeps a group together if one part has room for it.
    std::vector<std::size_t> alone = common;
    alone.insert(alone.end(), own.begin(), own.end());
    if (width_of(part_of(alone, widths)) <= width) {
      take(own);
    } else {
      for (const std::size_t column : own) take({column});
    }
  }
  done.push_back(part_of(current, widths));
  return done;
}

TextTable TextTable::numbered() const {
  std::vector<TableGroup> groups = groups_;
  groups.insert(groups.begin(), TableGroup{"", {{"#"}}});
  TextTable table(std::move(groups));
  std::size_t number = 0;
  for (Line line : lines_) {
    if (!line.cells.empty()) line.cells.insert(line.cells.begin(), std::to_string(++number));
    table.lines_.push_back(std::move(line));
  }
  return table;
}

std::string TextTable::rows_text(const Part& part, const std::vector<std::string>& cells) const {
  const std::vector<Column> all = columns();
  std::vector<std::vector<std::string>> wrapped;
  std::size_t height = 1;
  for (std::size_t i = 0; i < part.columns.size() && part.columns[i] < cells.size(); ++i) {
    wrapped.push_back(wrap_words(cells[part.columns[i]], all[part.columns[i]].words->left ? part.widths[i] : 0));
    height = std::max(height, wrapped.back().size());
  }
  std::string out;
  for (std::size_t line = 0; line < height; ++line) {
    if (line > 0) out = without_trailing_blanks(out) + '\n';
    for (std::size_t i = 0; i < wrapped.size(); ++i) {
      const std::string text = line < wrapped[i].size() ? wrapped[i][line] : "";
      out += separator(part, i);
      out += all[part.columns[i]].words->left ? fmt::format("{:<{}}", text, part.widths[i])
                                              : fmt::format("{:>{}}", text, part.widths[i]);
    }
  }
  return out;
}

std::string TextTable::note_text(const Part& part, const Line& line, std::size_t width) const {
  const std::string before = line.cells.empty() ? "" : rows_text(part, line.cells) + std::string(kGroupSeparator);
  const std::size_t begin = before.size() - (before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1);
  if (width == 0) return before + line.rest;
  // If long cells leave no room, the text goes on the next line.
  const bool below = begin + kNarrowText > width;
  std::string out = below ? without_trailing_blanks(before) + '\n' + std::string(kIndent, ' ') : before;
  const std::size_t indent = below ? kIndent : begin;
  bool begun = false;
  for (const std::string& text : wrap_words(line.rest, width - std::min(width, indent))) {
    if (begun) out += '\n' + std::string(indent == 0 ? kIndent : indent, ' ');
    out += text;
    begun = true;
  }
  return out;
}

std::string TextTable::group_header(const Part& part) const {
  const std::vector<Column> all = columns();
  std::string out;
  for (std::size_t i = 0; i < part.columns.size();) {
    const std::size_t group = all[part.columns[i]].group;
    out += i == 0 ? "" : std::string(kGroupSeparator);
    std::size_t width = 0;
    std::string tops;
    for (bool first = true; i < part.columns.size() && all[part.columns[i]].group == group; ++i, first = false) {
      width += (first ? 0 : 1) + part.widths[i];
      tops += fmt::format("{}{:>{}}", first ? "" : " ", all[part.columns[i]].words->top, part.widths[i]);
    }
    out += groups_[group].header.empty() ? tops : fmt::format("{:<{}}", groups_[group].header, width);
  }
  return out;
}

// `first_missing`: the first column that is not in an earlier part.
std::string TextTable::part_text(const Part& part, std::size_t first_missing, std::size_t width) const {
  std::vector<std::string> headers;
  for (const auto& [group, column] : columns()) headers.push_back(column->header);
  std::string out = without_trailing_blanks(group_header(part)) + '\n';
  const std::string second = rows_text(part, headers);
  out += without_trailing_blanks(second) + '\n' + std::string(width_of(part), '-') + '\n';
  for (const Line& line : lines_) {
    const bool is_full = line.rest.empty() || line.cells.size() > part.columns.back();
    if (!is_full && !line.cells.empty() && line.cells.size() < first_missing) continue;  // its text is in another part
    out += without_trailing_blanks(is_full ? rows_text(part, line.cells) : note_text(part, line, width)) + '\n';
  }
  return out;
}

std::string TextTable::text(std::size_t width) const {
  const std::size_t key = groups_.front().columns.size();
  std::vector<Part> all = parts(width);
  if (all.size() > 1) {
    std::vector<std::size_t> first(key);
    std::iota(first.begin(), first.end(), std::size_t{0});
    const bool is_wide = width_of(part_of(first, cell_widths())) > width / 2;
    const bool has_number = groups_.front().columns.front().header == "#";
    if (is_wide && !has_number) return numbered().text(width);
  }
  std::string out;
  std::size_t first_missing = 0;
  for (const Part& part : all) {
    out += (out.empty() ? "" : "\n") + part_text(part, first_missing, width);
    first_missing = part.columns.back() + 1;
  }
  return out;
}

std::string number_text(const std::optional<double>& value) {
  if (!value) return "-";
  const double v = std::abs(*value);
  const int decimals = v >= 100 ? 1 : v >= 1 || v == 0 ? 2 : v >= 0.1 ? 3 : 4;
  return with_digits(*value, decimals);
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return line + "\r\n";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace verbscope
