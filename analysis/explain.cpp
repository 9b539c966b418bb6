#include "analysis/explain.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/counted_cause.hpp"
#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/record.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

// Smaller loads are not in the table.
constexpr double kShown = 0.005;
// Maximum number of changes in the text; JSON contains all.
constexpr std::size_t kMaxListed = 10;

double rate_of(const Record& record) {
  return number_at(record.result, "rate_mops").value_or(0);
}

bool simulated(const Record& record) {
  return record.environment.value("simulated", false);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

// The evidence for a limit besides its gain, as a clause; may be empty.
std::string evidence(const Limit& limit, const Explanation& it) {
  const Load& load = limit.load;
  const auto per_op = [&it](const char* key) { return extra_per_op(*it.record, key).value_or(0); };
  switch (load.resource) {
    case Resource::mmio: {
      const Load* link = find_load(limit.of_peer ? it.loads.peers : it.loads.server, Resource::pcie_to_nic);
      if (link == nullptr || load.utilisation <= 0) break;
      return fmt::format("{} of the link's time, which is {} busy", percent(load.utilisation),
                         percent(link->utilisation));
    }
    case Resource::wqe_cache:
      return fmt::format("{:.2f} lines of WQEs are read again per operation", it.loads.wqes_reread);
    case Resource::qp_context_cache:
      return fmt::format("{:.2f} misses per operation", per_op("qp_context_misses"));
    case Resource::translation_cache:
      return fmt::format("{:.2f} misses per operation", per_op("translation_misses"));
    case Resource::recv_queue: {
      const double ops = number_at(it.record->result, "window_ops").value_or(0);
      const auto seen = [&](const char* key) { return ops > 0 ? counted_in_all(*it.record, key) / ops : 0; };
      if (const double naks = seen("rnr_naks_sent"); naks > 0)
        return fmt::format("{:.3g} RNR NAKs per operation", naks);
      if (const double lost = seen("dropped_no_recv"); lost > 0)
        return fmt::format("{:.3g} messages dropped per operation", lost);
      if (const double waits = seen("recv_waits"); waits > 0)
        return fmt::format("{:.3g} waits for a RECV per operation", waits);
      break;
    }
    case Resource::outstanding:
    case Resource::reads_outstanding:
      return "the program waits for its own operations to come back";
    default:
      break;
  }
  if (load.utilisation < kShown) return "";
  std::string out =
      fmt::format("{} {}", percent(load.utilisation), it.loads.measured ? "busy" : "of what the model allows");
  if (is_unit(load.resource) && load.rereading >= kShown)
    out += fmt::format(", {} of it reading WQEs again", percent(load.rereading / load.utilisation));
  return out;
}

std::string with_evidence(const Limit& limit, const Explanation& it) {
  const std::string seen = evidence(limit, it);
  return words_for(limit) + (seen.empty() ? "" : " (" + seen + ")");
}

// How the gains were found.
const char* how(const Explanation& it) {
  return it.runs ? "simulated" : "closed form";
}

std::string load_table(const Explanation& it, std::size_t width) {
  std::vector<TableGroup> groups{{"", {{"resource", true}}}, {"server", {{"load"}, {"twice gives"}}}};
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
    if (most < kShown && !is_limit(each.resource) && !helps) continue;
    std::vector<std::string> cells{std::string(each.words), load == nullptr ? "-" : percent(load->utilisation),
                                   gain                               ? gain_text(*gain)
                                   : it.brings_nothing(each.resource) ? "< +3 %"
                                                                      : "-"};
    if (load != nullptr && load->waited >= kShown)
      cells[0] += fmt::format(" ({} waiting for state)", percent(load->waited));
    if (load != nullptr && load->held_up >= kShown) cells[0] += fmt::format(" ({} held up)", percent(load->held_up));
    if (!it.loads.peers.empty()) {
      cells.push_back(peer == nullptr ? "-" : percent(peer->utilisation));
      cells.push_back(peer == nullptr || peer->utilisation < kShown ? "" : peer->node);
    }
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

Json heading_json(const Record& record) {
  return Json{{"id", point_id(record)},
              {"title", point_title(record)},
              {"fabric", record.environment.at("fabric")},
              {"simulated", record.environment.at("simulated")}};
}

std::string heading(const Record& record) {
  const auto fabric = record.environment.value("fabric", "?");
  return fmt::format("{}  {} on {}{}\n", point_id(record), point_title(record), fabric,
                     is_simulated(fabric) ? " (SIMULATED)" : "");
}

const char* source(bool by_run) {
  return by_run ? "run" : "closed_form";
}

Json limit_json(const Limit& limit, const Explanation& it) {
  Json out{{"resource", to_string(limit.load.resource)},
           {"words", words_for(limit)},
           {"node", limit.load.node},
           {"load", limit.load.utilisation},
           {"gain", limit.gain},
           {"evidence", evidence(limit, it)},
           {"by", source(it.runs.has_value())}};
  if (!limit.option.empty()) out["option"] = Json{{limit.option, limit.value}};
  return out;
}

std::string words_of(const TriedTwice& tried) {
  if (tried.doubled.size() > 2) return fmt::format("{} others together", tried.doubled.size());
  std::vector<std::string_view> words;
  for (const Resource resource : tried.doubled) words.push_back(words_for(resource));
  return fmt::format("{}", fmt::join(words, " and "));
}

// Stalls in the adapters' counters that no load covers. A run on simulated InfiniBand covers them by the load of its
// RECVs.
std::vector<CountedStall> stalls_of(const Record& record) {
  const bool lossless = simulated(record) && !record.config.contains("flow_control");
  return lossless ? std::vector<CountedStall>{} : counted_stalls(record);
}

std::string stalls_text(const Record& record) {
  std::vector<std::string> parts;
  for (const CountedStall& each : stalls_of(record)) {
    parts.push_back(fmt::format("{} ({:.2g} {} per operation, {}{})", each.cause, each.per_op, each.unit, each.counter,
                                each.changed_by));
  }
  return parts.empty() ? ""
                       : fmt::format("Counted by the adapters, and each holds QPs up: {}.\n", fmt::join(parts, "; "));
}

// What was simulated, or why only the closed form was used.
std::string basis_text(const Explanation& it) {
  if (!it.runs) {
    if (it.not_run.empty()) return "";
    return "By the closed form, which knows the interface and not the NIC: " + it.not_run + ".";
  }
  const SimulatedAnswer& runs = *it.runs;
  std::string out = fmt::format("{} runs on copies of {} in {:.1f} s; as it is {} simulated Mops, {} {}.", runs.runs,
                                runs.cluster, runs.seconds, number_text(runs.base_mops),
                                simulated(*it.record) ? "in the record" : "measured", number_text(rate_of(*it.record)));
  std::vector<std::string> gains;
  for (const TriedTwice& each : runs.tried) gains.push_back(words_of(each) + " " + gain_text(each.gain));
  out += fmt::format(" Twice of: {}.", fmt::join(gains, "; "));
  if (!runs.assumed.empty())
    out += fmt::format(" This rests on parameters of {} whose values are assumed: {}.", runs.cluster,
                       fmt::join(runs.assumed, ", "));
  for (const std::string& failed : runs.failed) out += " Could not be run: " + failed + ".";
  return out;
}

Json runs_json(const SimulatedAnswer& runs) {
  Json tried = Json::array();
  for (const TriedTwice& each : runs.tried) {
    Json doubled = Json::array();
    for (const Resource resource : each.doubled) doubled.push_back(to_string(resource));
    tried.push_back(Json{{"twice", std::move(doubled)}, {"gain", each.gain}});
  }
  return Json{{"cluster", runs.cluster}, {"assumed", runs.assumed}, {"base_mops", runs.base_mops},
              {"runs", runs.runs},       {"seconds", runs.seconds}, {"tried", std::move(tried)},
              {"failed", runs.failed}};
}

std::string advice_line(const Advice& advice, const Explanation& it, std::size_t width) {
  const double rate = (it.runs ? it.runs->base_mops : rate_of(*it.record)) * advice.factor;
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
      if (listed++ == 0) out += other ? "If the payload may change:\n" : fmt::format("Changes ({}):\n", how(it));
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
    if (!helps && !it.limits.empty()) return "The closed form knows no change that lifts this limit by 3 % or more.\n";
    return "";
  }
  const SimulatedAnswer& runs = *it.runs;
  if (runs.neighbours == 0) return "";
  if (runs.neighbours_run < runs.neighbours)
    return fmt::format("{} of {} changes of one option were run{}; --budget 0 runs all.\n", runs.neighbours_run,
                       runs.neighbours, helps ? "" : ", and none brings 3 % or more");
  if (helps) return "";
  return fmt::format("No change helps: all {} changes of one option were run, and none brings 3 % or more.\n",
                     runs.neighbours);
}

std::string target_text(const TargetAnswer& target) {
  const std::string value = fmt::format("{} of {}", number_text(target.value), target.asked);
  if (!target.reached)
    return fmt::format(
        "Target {}: not reached. The best found is {}{}. In the way: {}.\n", target.asked, number_text(target.value),
        target.change.options.empty() ? ", the point as it is" : " with " + target.change.change, target.in_the_way);
  if (target.change.options.empty())
    return fmt::format("Target {}: the point reaches it as it is, {}.\n", target.asked, number_text(target.value));
  return fmt::format("Target {}: {} reaches {} (simulated):\n    {}\n", target.asked, target.change.change,
                     number_text(target.value), target.change.command);
}

Json advice_json(const Advice& advice) {
  return Json{{"change", advice.change},
              {"factor", advice.factor},
              {"at_least", advice.at_least},
              {"options", advice.options},
              {"other_payload", advice.other_payload},
              {"command", advice.command},
              {"by", source(advice.by_run)}};
}

Json target_json(const TargetAnswer& target) {
  return Json{{"asked", target.asked},
              {"reached", target.reached},
              {"value", target.value},
              {"options", target.change.options},
              {"command", target.change.command},
              {"in_the_way", target.in_the_way}};
}

Json loads_json(const std::vector<Load>& loads) {
  Json out = Json::array();
  for (const Load& load : loads) {
    out.push_back(Json{{"resource", to_string(load.resource)},
                       {"words", words_for(load.resource)},
                       {"node", load.node},
                       {"load", load.utilisation},
                       {"waited", load.waited},
                       {"held_up", load.held_up},
                       {"elastic", load.elastic}});
  }
  return out;
}

}  // namespace

std::string words_for(const Limit& limit) {
  std::string out(words_for(limit.load.resource));
  if (!limit.option.empty()) out += fmt::format(" (--{} {:g})", limit.option, limit.value);
  if (limit.of_peer) out += " of " + limit.load.node;
  return out;
}

std::string gain_text(double factor) {
  if (std::abs(factor - 1) < 0.005) return "+0 %";
  return factor >= 10 ? fmt::format("x {:.0f}", factor) : fmt::format("{:+.0f} %", (factor - 1) * 100);
}

std::string Explanation::limit_words() const {
  std::vector<std::string> words;
  for (const Limit& each : limits) words.push_back(words_for(each));
  return fmt::format("{}", fmt::join(words, " and "));
}

std::string Explanation::limit_sentence() const {
  if (limits.empty()) return "No single limit: " + undecided + ".";
  if (limits.size() == 1) {
    const Limit& limit = limits.front();
    return fmt::format("Limit: {}. Twice of it gives {} ({}).", with_evidence(limit, *this), gain_text(limit.gain),
                       how(*this));
  }
  std::vector<std::string> words, gains;
  for (const Limit& each : limits) {
    words.push_back(with_evidence(each, *this));
    gains.push_back(gain_text(each.gain));
  }
  return fmt::format("Limits, which only help together: {}. Twice of one alone gives {}, of all {} ({}).",
                     fmt::join(words, " and "), fmt::join(gains, " or "), gain_text(gain_of_all), how(*this));
}

std::string Explanation::options_sentence() const {
  std::vector<std::string> parts;
  for (const Limit& each : limiting_options) parts.push_back(with_evidence(each, *this) + " " + gain_text(each.gain));
  return parts.empty()
             ? ""
             : fmt::format(" Options that limit too, and what twice of each gives: {}.", fmt::join(parts, "; "));
}

std::optional<double> Explanation::gain_of(Resource resource) const {
  const Resource of = capacity(resource);
  if (runs) {
    for (const TriedTwice& each : runs->tried) {
      if (each.doubled.size() == 1 && each.doubled.front() == of) return each.gain;
    }
  }
  for (const Limit& each : limits) {
    if (capacity(each.load.resource) == of) return each.gain;
  }
  return std::nullopt;
}

bool Explanation::brings_nothing(Resource resource) const {
  return runs && std::ranges::any_of(runs->tried, [&](const TriedTwice& each) {
           return each.gain < kWorthwhile && std::ranges::find(each.doubled, capacity(resource)) != each.doubled.end();
         });
}

Explanation explain(const Record& record) {
  const std::optional<Prediction> prediction = prediction_of(record);
  Diagnosis diagnosis = diagnose(resource_loads(record, prediction ? &*prediction : nullptr));
  Explanation out{.record = &record, .loads = diagnosis.loads, .limits = diagnosis.limits};
  out.gain_of_all = diagnosis.gain_of_all;
  out.undecided = diagnosis.undecided;
  out.advice = advise(record, prediction, diagnosis);
  return out;
}

std::string failed_text(const Record& record) {
  return heading(record) + "FAILED: " + record.reason + "\n";
}

Json failed_json(const Record& record) {
  Json json = heading_json(record);
  json["failed"] = record.reason;
  return json;
}

std::string explain_text(const Explanation& it, std::size_t width) {
  const Record& record = *it.record;
  std::string out = heading(record) + wrap_lines(fmt::format("{} {}Mops. {}{}\n", number_text(rate_of(record)),
                                                             simulated(record) ? "simulated " : "", it.limit_sentence(),
                                                             it.options_sentence()),
                                                 width);
  out += wrap_lines(stalls_text(record), width);
  if (it.runs && it.runs->target) out += wrap_lines(target_text(*it.runs->target), width);
  if (!it.loads.server.empty()) out += "\n" + load_table(it, width);
  out += "\n";
  if (const std::string basis = basis_text(it); !basis.empty()) out += wrap_lines(basis + "\n", width);
  return out + advice_text(it, width) + wrap_lines(neighbours_text(it), width);
}

Json explain_json(const Explanation& it) {
  Json json = heading_json(*it.record);
  json["rate_mops"] = rate_of(*it.record);
  json["runs"] = it.runs ? runs_json(*it.runs) : Json();
  json["not_run"] = it.not_run.empty() ? Json() : Json(it.not_run);
  json["limits"] = Json::array();
  for (const Limit& each : it.limits) json["limits"].push_back(limit_json(each, it));
  json["limiting_options"] = Json::array();
  for (const Limit& each : it.limiting_options) json["limiting_options"].push_back(limit_json(each, it));
  json["limit"] = it.limits.empty() ? Json() : json["limits"].front();
  json["gain_of_all"] = it.gain_of_all;
  json["undecided"] = it.undecided;
  json["sentence"] = it.limit_sentence();
  json["counted_stalls"] = Json::array();
  for (const CountedStall& each : stalls_of(*it.record)) {
    json["counted_stalls"].push_back(
        Json{{"cause", each.cause}, {"unit", each.unit}, {"counter", each.counter}, {"per_op", each.per_op}});
  }
  json["measured"] = it.loads.measured;
  json["loads"] = loads_json(it.loads.server);
  json["peer_loads"] = loads_json(it.loads.peers);
  json["advice"] = Json::array();
  json["other_payload"] = Json::array();
  for (const Advice& each : it.advice)
    json[each.other_payload ? "other_payload" : "advice"].push_back(advice_json(each));
  if (it.runs) {
    const SimulatedAnswer& runs = *it.runs;
    json["neighbours"] = Json{{"legal", runs.neighbours}, {"run", runs.neighbours_run}};
    json["no_change_helps"] = json["advice"].empty() && runs.neighbours > 0 && runs.neighbours_run == runs.neighbours;
    if (runs.target) json["target"] = target_json(*runs.target);
  }
  return json;
}

}  // namespace verbscope
