// The text of `verbscope explain`: of one point, and the overview of several points.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/explain.hpp"
#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/record.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

// Maximum number of changes in the text; JSON contains all.
constexpr std::size_t kMaxListed = 10;

std::string load_table(const Explanation& it, std::size_t width) {
  std::vector<TableGroup> groups{{"", {{"resource", true}}}, {"server", {{"load"}, {"doubled"}}}};
  if (!it.loads.peers.empty()) groups.push_back({"busiest client", {{"load"}, {"", true}}});
  TextTable table(groups);
  const auto is_limit = [&it](Resource resource) {
    return std::ranges::any_of(it.limits, [&](const Limit& each) { return each.load.resource == resource; });
  };
  for (const ResourceFacts& each : all_resources()) {
    const Load* load = find_load(it.loads.server, each.resource);
    const Load* peer = find_load(it.loads.peers, each.resource);
    const auto gain = it.gain_of(each.resource);
    const double most = std::max(load == nullptr ? 0 : load->utilisation, peer == nullptr ? 0 : peer->utilisation);
    const bool helps = gain && *gain >= kWorthwhile && capacity(each.resource) == each.resource;
    if (most < kMinShownLoad && !is_limit(each.resource) && !helps) continue;
    std::vector<std::string> cells{std::string(each.words), load == nullptr ? "-" : share_text(load->utilisation),
                                   gain                             ? gain_text(*gain)
                                   : it.is_ruled_out(each.resource) ? "< +3 %"
                                                                    : "-"};
    if (load != nullptr && load->waited >= kMinShownLoad)
      cells[0] += fmt::format(" ({} waiting for state)", share_text(load->waited));
    if (load != nullptr && load->memory >= kMinShownLoad)
      cells[0] += fmt::format(" ({} waiting for memory)", share_text(load->memory));
    if (load != nullptr && load->held_up >= kMinShownLoad)
      cells[0] += fmt::format(" ({} held up)", share_text(load->held_up));
    if (!it.loads.peers.empty()) {
      cells.push_back(peer == nullptr ? "-" : share_text(peer->utilisation));
      cells.push_back(peer == nullptr || peer->utilisation < kMinShownLoad ? "" : peer->node);
    }
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

std::string words_of(const DoublingRun& tried) {
  if (tried.doubled.size() > 2) return fmt::format("{} others together", tried.doubled.size());
  std::vector<std::string_view> words;
  for (const Resource resource : tried.doubled) words.push_back(words_for(resource));
  return fmt::format("{}", fmt::join(words, " and "));
}

std::string stalls_text(const Explanation& it) {
  std::vector<std::string> parts;
  for (const CountedStall& each : it.stalls()) {
    parts.push_back(fmt::format("{} ({:.2g} {} per operation, {}{})", each.cause, each.per_op, each.unit, each.counter,
                                each.changed_by));
  }
  return parts.empty() ? "" : fmt::format("The adapters counted stalls of QPs: {}.\n", fmt::join(parts, "; "));
}

// The simulated runs, or the reason why only the closed form was used.
std::string basis_text(const Explanation& it) {
  if (!it.runs) {
    if (it.not_run.empty()) return "";
    return "Closed form only (it covers the interface, not the NIC): " + it.not_run + ".";
  }
  const SimulatedAnswer& runs = *it.runs;
  std::string out = fmt::format("{} runs on copies of {} in {:.1f} s. Unchanged: {} simulated Mops ({}: {}).",
                                runs.runs, runs.cluster, runs.seconds, number_text(runs.base_mops),
                                it.simulated() ? "in the record" : "measured", number_text(it.rate_mops()));
  std::vector<std::string> gains;
  for (const DoublingRun& each : runs.tried) gains.push_back(words_of(each) + " " + gain_text(each.gain));
  out += fmt::format(" Gains from doubling: {}.", fmt::join(gains, "; "));
  if (!runs.assumed.empty())
    out +=
        fmt::format(" Assumed parameters of {}, which set a limit: {}.", runs.cluster, fmt::join(runs.assumed, ", "));
  for (const std::string& failed : runs.failed) out += " Failed: " + failed + ".";
  return out;
}

std::string advice_line(const Advice& advice, const Explanation& it, std::size_t width) {
  const double rate = (it.runs ? it.runs->base_mops : it.rate_mops()) * advice.factor;
  const std::string gain = fmt::format("{:>7}  {:>7} Mops{}", gain_text(advice.factor), number_text(rate),
                                       advice.at_least ? " or more" : "");
  return wrap_lines(fmt::format("  {}  {}\n", gain, advice.change), width);
}

std::string advice_text(const Explanation& it, std::size_t width) {
  std::string out;
  for (const bool other : {false, true}) {
    std::size_t listed = 0;
    for (const Advice& advice : it.advice) {
      if (advice.other_payload != other || listed == kMaxListed) continue;
      if (listed++ == 0)
        out += other ? "If the payload may change:\n" : fmt::format("Changes ({}):\n", it.gain_source());
      out += advice_line(advice, it, width);
    }
  }
  const auto best =
      std::ranges::find_if(it.advice, [](const Advice& each) { return !each.other_payload && !each.command.empty(); });
  if (best != it.advice.end()) out += "The first as a command:\n    " + best->command + "\n";
  return out;
}

// The text if no change is listed, or if not all changes were tried.
std::string neighbours_text(const Explanation& it) {
  const bool helps = std::ranges::any_of(it.advice, [](const Advice& each) { return !each.other_payload; });
  if (!it.runs) {
    if (!helps && !it.limits.empty()) return "The closed form has no change that raises the rate by 3 % or more.\n";
    return "";
  }
  const SimulatedAnswer& runs = *it.runs;
  if (runs.neighbours == 0) return "";
  if (runs.neighbours_run < runs.neighbours)
    return fmt::format("Ran {} of {} changes of one option{}; --budget 0 runs all.\n", runs.neighbours_run,
                       runs.neighbours, helps ? "" : ": none raises the rate by 3 %");
  if (helps) return "";
  return fmt::format("No change helps: none of the {} changes of one option raises the rate by 3 %.\n",
                     runs.neighbours);
}

std::string target_text(const TargetAnswer& target) {
  if (!target.reached)
    return fmt::format("Target {}: not reached. Best: {} {}. Limit: {}.\n", target.asked, number_text(target.value),
                       target.change.options.empty() ? "without a change" : "with " + target.change.change,
                       target.in_the_way);
  if (target.change.options.empty())
    return fmt::format("Target {}: reached without a change ({}).\n", target.asked, number_text(target.value));
  return fmt::format("Target {}: {} reaches {} (simulated):\n    {}\n", target.asked, target.change.change,
                     number_text(target.value), target.change.command);
}

// "sim:cib (SIMULATED)".
std::string fabric_text(const Record& record) {
  const auto fabric = record.environment.value("fabric", "?");
  return is_simulated(fabric) ? fabric + " (SIMULATED)" : fabric;
}

std::string heading(const Record& record) {
  return fmt::format("{}  {} on {}\n", point_id(record), point_title(record), fabric_text(record));
}

std::vector<std::string> differing_options(const std::vector<Explanation>& points) {
  std::vector<const Record*> records;
  for (const Explanation& each : points) records.push_back(each.record);
  std::vector<std::string> keys = option_keys(records);
  std::erase_if(keys, [&points](const std::string& key) {
    const std::string first = option_text(*points.front().record, key);
    return std::ranges::all_of(points,
                               [&](const Explanation& each) { return option_text(*each.record, key) == first; });
  });
  return keys;
}

// The common part of a series: everything except option `varied`.
std::string series_key(const Explanation& it, const std::vector<std::string>& keys, const std::string& varied) {
  std::string out = it.record->benchmark + " " + it.record->environment.value("fabric", "");
  for (const std::string& key : keys) {
    if (key != varied) out += fmt::format(" {}={}", key, option_text(*it.record, key));
  }
  return out;
}

// "send_rate on sim:cib (SIMULATED)".
std::string head_of(const Explanation& it) {
  return fmt::format("{} on {}", it.record->benchmark, fabric_text(*it.record));
}

std::string load_text(const Explanation& it) {
  if (it.limits.empty() || it.limits.front().load.utilisation <= 0) return "-";
  return fmt::format("{:.0f} %", it.limits.front().load.utilisation * 100);
}

std::vector<BendPoint> bend_points(const Series& series) {
  std::vector<BendPoint> points;
  for (const Explanation* each : series.points) {
    points.push_back({.x = *number_at(each->record->config, series.option),
                      .mops = each->rate_mops(),
                      .record = each->record,
                      .limit = each->limit_words()});
  }
  return points;
}

const Advice* best_change(const Explanation& it) {
  const auto best = std::ranges::find(it.advice, false, &Advice::other_payload);
  return best == it.advice.end() ? nullptr : &*best;
}

}  // namespace

std::string failed_text(const Record& record) {
  return heading(record) + "FAILED: " + record.reason + "\n";
}

std::string explain_text(const Explanation& it, std::size_t width) {
  const Record& record = *it.record;
  std::string out = heading(record) + wrap_lines(fmt::format("{} {}Mops. {}{}\n", number_text(it.rate_mops()),
                                                             it.simulated() ? "simulated " : "", it.limit_sentence(),
                                                             it.options_sentence()),
                                                 width);
  out += wrap_lines(stalls_text(it), width);
  if (it.runs && it.runs->target) out += wrap_lines(target_text(*it.runs->target), width);
  if (!it.loads.server.empty()) out += "\n" + load_table(it, width);
  out += "\n";
  if (const std::string basis = basis_text(it); !basis.empty()) out += wrap_lines(basis + "\n", width);
  return out + advice_text(it, width) + wrap_lines(neighbours_text(it), width);
}

std::vector<Series> series_of(const std::vector<Explanation>& points) {
  std::vector<Series> out;
  if (points.empty()) return out;
  const std::vector<std::string> keys = differing_options(points);
  for (const std::string& key : keys) {
    std::map<std::string, Series> groups;
    for (const Explanation& each : points) {
      if (!number_at(each.record->config, key)) continue;
      Series& series = groups[series_key(each, keys, key)];
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
  std::map<std::size_t, Bend> cliffs;
  for (Bend& bend : bends_along(series.option, bend_points(series))) {
    if (bend.kind == Bend::Kind::cliff) cliffs.emplace(bend.at, std::move(bend));
  }
  std::vector<std::string> parts;
  std::string limit = series.points.front()->limit_words();
  for (std::size_t i = 1; i < series.points.size(); ++i) {
    const Explanation &before = *series.points[i - 1], &here = *series.points[i];
    if (here.limit_words() != limit) {
      parts.push_back(fmt::format("{} {}: {}", parts.empty() ? "to" : "then to", value(before), limit));
      limit = here.limit_words();
      if (i + 1 == series.points.size()) parts.push_back(fmt::format("from {}: {}", value(here), limit));
    } else if (!parts.empty() && i + 1 == series.points.size()) {
      parts.push_back("then: " + limit);
    }
    if (const auto cliff = cliffs.find(i); cliff != cliffs.end()) {
      parts.push_back(fmt::format("{}, {} after {} Mops: {}", cliff->second.place, number_text(here.rate_mops()),
                                  number_text(before.rate_mops()), cliff->second.cause));
    }
  }
  return parts.empty() ? "" : fmt::format("{}: {}", series.option, fmt::join(parts, "; "));
}

std::string overview_text(const std::vector<Explanation>& points, std::size_t width) {
  if (points.empty()) return "";
  const std::vector<std::string> keys = differing_options(points);
  std::vector<TableColumn> options;
  for (const std::string& key : keys) options.push_back({key});
  std::set<std::string> heads;
  for (const Explanation& each : points) heads.insert(head_of(each));
  std::vector<TableGroup> groups{{"", {{"id", true}}}};
  if (heads.size() > 1) groups.front().columns.push_back({"of", true});
  if (!options.empty()) groups.push_back({"", options});
  groups.push_back({"", {{"Mops"}, {"limit", true}, {"load"}, {"doubled"}, {"best change", true}, {"gain"}}});
  TextTable table(groups);
  for (const Explanation& each : points) {
    std::vector<std::string> cells{point_id(*each.record)};
    if (heads.size() > 1) cells.push_back(head_of(each));
    for (const std::string& key : keys) cells.push_back(option_text(*each.record, key));
    const Advice* best = best_change(each);
    cells.insert(cells.end(),
                 {number_text(each.rate_mops()), each.limit_words(), load_text(each),
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
