#include "analysis/overview.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/environment.hpp"
#include "common/words.hpp"

namespace verbscope {
namespace {

// A rate that falls by more than this from one value to the next has a cliff there.
constexpr double kCliff = 0.1;

double rate_of(const Explanation& it) {
  return number_at(it.record->result, "rate_mops").value_or(0);
}

// The options whose values differ between the points.
std::vector<std::string> varied(const std::vector<Explanation>& points) {
  std::vector<std::string> keys;
  for (const Explanation& each : points) {
    for (std::string& key : option_keys(*each.record)) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    }
  }
  std::erase_if(keys, [&points](const std::string& key) {
    const std::string first = option_text(*points.front().record, key);
    return std::ranges::all_of(points,
                               [&](const Explanation& each) { return option_text(*each.record, key) == first; });
  });
  return keys;
}

// What a series has in common: everything but one option.
std::string others_of(const Explanation& it, const std::vector<std::string>& keys, const std::string& but) {
  std::string out = it.record->benchmark + " " + it.record->environment.value("fabric", "");
  for (const std::string& key : keys) {
    if (key != but) out += fmt::format(" {}={}", key, option_text(*it.record, key));
  }
  return out;
}

// "send_rate on sim:cib (SIMULATED)".
std::string head_of(const Explanation& it) {
  const auto fabric = it.record->environment.value("fabric", "?");
  return fmt::format("{} on {}{}", it.record->benchmark, fabric, is_simulated(fabric) ? " (SIMULATED)" : "");
}

std::string load_of(const Explanation& it) {
  if (it.limits.empty() || it.limits.front().load.utilisation <= 0) return "-";
  return fmt::format("{:.0f} %", it.limits.front().load.utilisation * 100);
}

std::string limit_of(const Explanation& it) {
  return it.limits.empty() ? "not decided" : it.limit_words();
}

const Advice* best_change(const Explanation& it) {
  const auto best = std::ranges::find(it.advice, false, &Advice::other_payload);
  return best == it.advice.end() ? nullptr : &*best;
}

// Why the rate falls from one point to the next: what the adapters miss then and did not before, else the limit.
std::string cliff_cause(const Explanation& before, const Explanation& here) {
  struct Miss {
    const char* counter;
    const char* words;
  };
  constexpr std::array<Miss, 5> kMisses = {
      {{"wqe_cache_reread_lines", "the cache of WQEs: {:.2g} lines are read again"},
       {"qp_context_misses", "the cache of QP contexts: {:.2g} misses"},
       {"translation_misses", "the cache of address translations: {:.2g} misses"},
       {"rnr_naks_sent", "RECVs posted: {:.2g} RNR NAKs"},
       {"dropped_no_recv", "RECVs posted: {:.2g} messages dropped"}}};
  const auto per_op = [](const Explanation& it, const char* counter) {
    const double ops = number_at(it.record->result, "window_ops").value_or(0);
    return ops > 0 ? counted_in_all(*it.record, counter) / ops : 0;
  };
  const auto grown = [&](const Miss& miss) { return per_op(here, miss.counter) - per_op(before, miss.counter); };
  const Miss* most = &kMisses.front();
  for (const Miss& each : kMisses) {
    if (grown(each) > grown(*most)) most = &each;
  }
  if (grown(*most) > kRereadCounts)
    return fmt::format(fmt::runtime(most->words), per_op(here, most->counter)) + " per operation";
  return here.limits.empty() ? here.undecided : here.limit_words();
}

}  // namespace

std::vector<Series> series_of(const std::vector<Explanation>& points) {
  std::vector<Series> out;
  if (points.empty()) return out;
  const std::vector<std::string> keys = varied(points);
  for (const std::string& key : keys) {
    std::map<std::string, Series> groups;
    for (const Explanation& each : points) {
      if (!number_at(each.record->config, key)) continue;
      Series& series = groups[others_of(each, keys, key)];
      series.option = key;
      series.points.push_back(&each);
    }
    for (auto& [_, series] : groups) {
      const auto value = [&key](const Explanation* each) { return *number_at(each->record->config, key); };
      std::ranges::stable_sort(series.points, {}, value);
      if (series.points.size() > 1 && value(series.points.front()) < value(series.points.back()))
        out.push_back(std::move(series));
    }
  }
  return out;
}

std::string changes_along(const Series& series) {
  const auto value = [&series](const Explanation& it) { return option_text(*it.record, series.option); };
  std::vector<std::string> parts;
  std::string limit = limit_of(*series.points.front());
  for (std::size_t i = 1; i < series.points.size(); ++i) {
    const Explanation &before = *series.points[i - 1], &here = *series.points[i];
    if (limit_of(here) != limit) {
      parts.push_back(fmt::format("{} {}: {}", parts.empty() ? "to" : "then to", value(before), limit));
      limit = limit_of(here);
      if (i + 1 == series.points.size()) parts.push_back(fmt::format("from {}: {}", value(here), limit));
    } else if (!parts.empty() && i + 1 == series.points.size()) {
      parts.push_back("then: " + limit);
    }
    if (rate_of(here) < (1 - kCliff) * rate_of(before))
      parts.push_back(fmt::format("cliff at {} {}, {} after {} Mops: {}", series.option, value(here),
                                  number_text(rate_of(here)), number_text(rate_of(before)), cliff_cause(before, here)));
  }
  return parts.empty() ? "" : fmt::format("{}: {}", series.option, fmt::join(parts, "; "));
}

std::string overview_text(const std::vector<Explanation>& points, std::size_t width) {
  if (points.empty()) return "";
  const std::vector<std::string> keys = varied(points);
  std::vector<TableColumn> options;
  for (const std::string& key : keys) options.push_back({key});
  std::set<std::string> heads;
  for (const Explanation& each : points) heads.insert(head_of(each));
  std::vector<TableGroup> groups{{"", {{"id", true}}}};
  if (heads.size() > 1) groups.front().columns.push_back({"of", true});
  if (!options.empty()) groups.push_back({"", options});
  groups.push_back({"", {{"Mops"}, {"limit", true}, {"load"}, {"twice gives"}, {"best change", true}, {"gives"}}});
  TextTable table(groups);
  for (const Explanation& each : points) {
    std::vector<std::string> cells{point_id(*each.record)};
    if (heads.size() > 1) cells.push_back(head_of(each));
    for (const std::string& key : keys) cells.push_back(option_text(*each.record, key));
    const Advice* best = best_change(each);
    cells.insert(cells.end(),
                 {number_text(rate_of(each)), limit_of(each), load_of(each),
                  each.limits.empty() ? "-" : gain_text(each.gain_of_all), best == nullptr ? "none" : best->change,
                  best == nullptr ? "-" : gain_text(best->factor)});
    table.add_row(std::move(cells));
  }
  std::set<std::string> lines;
  std::string changes;
  for (const Series& series : series_of(points)) {
    const std::string line = changes_along(series);
    if (!line.empty() && lines.insert(line).second) changes += wrap_lines("  " + line + "\n", width);
  }
  return (heads.size() > 1 ? "" : *heads.begin() + "\n") + table.text(width) +
         (changes.empty() ? "" : "\nWhere the limit changes:\n" + changes);
}

}  // namespace verbscope
