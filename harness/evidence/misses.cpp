#include "harness/evidence/misses.hpp"

#include <cmath>

#include "analysis/text_table.hpp"

namespace verbscope {

std::string miss_lines(const std::vector<EvidenceOutcome>& outcomes) {
  std::string known, gone, open;
  for (const EvidenceOutcome& each : outcomes) {
    const PublishedPoint& point = each.row->point;
    const bool is_published = each.row->columns.empty();
    if (!is_published || !each.ours || !each.error_percent) continue;
    // One step of a curve counts as no error elsewhere, but does not end a known miss.
    const bool is_known = !point.known_miss.empty();
    const double error = is_known ? point.exact_deviation_of(*each.ours) : *each.error_percent;
    const bool is_off = std::abs(error) > point.limit_percent();
    const std::string line =
        fmt::format("  {}: {} for {}, {} %", point.id, number_text(each.ours), point.value_text(), percent_text(error));
    if (is_known && is_off) known += fmt::format("{}: {}\n", line, point.known_miss);
    if (is_known && !is_off)
      gone += fmt::format("{}: within {:g} %; remove its known_miss\n", line, point.limit_percent());
    if (!is_known && is_off) open += line + "\n";
  }
  const auto titled = [](const char* title, const std::string& lines) {
    return lines.empty() ? "" : fmt::format("{}:\n{}", title, lines);
  };
  return titled("known misses", known) + titled("no longer misses", gone) +
         titled("published rows beyond their limit without a known reason", open);
}

}  // namespace verbscope
