#include "analysis/explain.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "common/environment.hpp"
#include "common/words.hpp"

namespace verbscope {
namespace {

double rate_of(const Record& record) {
  return number_at(record.result, "rate_mops").value_or(0);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

std::string gain(double factor) {
  return factor >= 10 ? fmt::format("x {:.0f}", factor) : fmt::format("{:+.0f} %", (factor - 1) * 100);
}

std::string place(const Limit& limit) {
  return limit.of_peer ? " of " + limit.load.node : "";
}

// The share of the units that take part; it is not kept of clients.
std::string units_used(const Limit& limit, const Loads& loads) {
  if (limit.of_peer) return "";
  const bool requester = limit.load.resource == Resource::requester_unit;
  return fmt::format(", and {} of the units do anything",
                     percent(requester ? loads.requester_units_used : loads.responder_units_used));
}

// A sentence about what it means that the resource is the limit.
std::string meaning(const Limit& limit, const Loads& loads) {
  const Load& load = limit.load;
  const bool waiting = load.resource == Resource::outstanding || load.resource == Resource::wqe_cache;
  if (load.utilisation <= 0 && !waiting) return "no busy time shows it";
  switch (load.resource) {
    case Resource::outstanding:
      return "nothing is ever full: the program waits for its own operations to come back";
    case Resource::atomic_slot:
      return fmt::format(
          "atomics wait for one lock of the atomic unit, which is held while a read and a write cross PCIe");
    case Resource::requester_unit:
    case Resource::responder_unit:
      return fmt::format("the busiest unit works {} of the time", percent(load.utilisation)) + units_used(limit, loads);
    case Resource::cpu:
      return fmt::format("its busiest thread never waits ({} of the time it works)", percent(load.utilisation));
    case Resource::driver_lock:
    case Resource::shared_line:
      return fmt::format("it goes from core to core, and serves one at a time, {} of the time",
                         percent(load.utilisation));
    case Resource::wqe_fetch:
      return fmt::format(
          "for {} of the time a unit has nothing to do, because no more WQEs may be fetched ahead than are "
          "on their way",
          percent(load.utilisation));
    case Resource::qp_context_cache:
    case Resource::translation_cache:
      return fmt::format("for {} of the time a unit waits for what must be read again", percent(load.utilisation));
    case Resource::wqe_cache:
      return "more WQEs are outstanding than it holds, and are read again";
    case Resource::mmio:
    case Resource::pcie_to_nic:
    case Resource::pcie_to_host:
    case Resource::wire_out:
    case Resource::wire_in:
    case Resource::requester_units:
    case Resource::responder_units:
    case Resource::dma_reads:
      break;
  }
  return fmt::format("{} {} of {}", loads.measured ? "in use" : "by rate and model in use", percent(load.utilisation),
                     loads.measured ? "the time" : "what it allows");
}

std::string load_table(const Explanation& it, std::size_t width) {
  const Loads& loads = it.diagnosis.loads;
  std::vector<TableGroup> groups{{"", {{"resource", true}}}, {"server", {{"load"}, {"headroom"}}}};
  if (!loads.peers.empty()) groups.push_back({"busiest client", {{"load"}, {"", true}}});
  TextTable table(groups);
  for (const Load& load : loads.server) {
    const double headroom = load.utilisation > 0 ? 1 / load.utilisation : 0;
    std::vector<std::string> cells{std::string(words_for(load.resource)), percent(load.utilisation),
                                   headroom == 0       ? "all"
                                   : headroom <= 1.005 ? "none"
                                                       : gain(headroom)};
    if (load.waited >= 0.005) cells[0] += fmt::format(" ({} waiting for state)", percent(load.waited));
    if (load.held_up >= 0.005) cells[0] += fmt::format(" ({} held up)", percent(load.held_up));
    if (!loads.peers.empty()) {
      const Load* peer = find_load(loads.peers, load.resource);
      cells.push_back(peer == nullptr ? "-" : percent(peer->utilisation));
      cells.push_back(peer == nullptr || peer->utilisation < 0.005 ? "" : peer->node);
    }
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

std::string heading(const Record& record) {
  const auto fabric = record.environment.value("fabric", "?");
  return fmt::format("{}  {} on {}{}\n", point_id(record), point_title(record), fabric,
                     is_simulated(fabric) ? " (SIMULATED)" : "");
}

const char* source(bool by_run) {
  return by_run ? "run" : "closed_form";
}

Json limit_json(const Limit& limit, bool by_run) {
  return Json{{"resource", to_string(limit.load.resource)},
              {"words", words_for(limit.load.resource)},
              {"node", limit.load.node},
              {"load", limit.load.utilisation},
              {"gain", limit.gain},
              {"by", source(by_run)}};
}

std::string words_for(const TriedTwice& tried) {
  if (tried.doubled.size() > 2) return fmt::format("{} others together", tried.doubled.size());
  std::vector<std::string_view> words;
  for (const Resource resource : tried.doubled) words.push_back(words_for(resource));
  return fmt::format("{}", fmt::join(words, " and "));
}

// What was simulated and what it showed; or why the closed form alone says what it says.
std::string runs_text(const WhatIf& what_if, double measured, bool simulated) {
  std::string out;
  if (what_if.base_mops > 0) {
    out = fmt::format("Simulated again on copies of {}, {} runs in {:.1f} s: as it is {} simulated Mops, {} {}.",
                      what_if.cluster, what_if.runs, what_if.seconds, number_text(what_if.base_mops),
                      simulated ? "in the record" : "measured", number_text(measured));
  }
  if (!what_if.not_run.empty()) {
    return out + (out.empty() ? "" : " ") + "Limits and gains are those of the closed form: " + what_if.not_run + ".";
  }
  std::vector<std::string> gains;
  for (const TriedTwice& each : what_if.tried) gains.push_back(words_for(each) + " " + gain(each.gain));
  out += fmt::format(" Twice of: {}.", fmt::join(gains, "; "));
  for (const std::string& failed : what_if.failed) out += " Could not be run: " + failed + ".";
  return out;
}

Json runs_json(const WhatIf& what_if) {
  Json tried = Json::array();
  for (const TriedTwice& each : what_if.tried) {
    Json doubled = Json::array();
    for (const Resource resource : each.doubled) doubled.push_back(to_string(resource));
    tried.push_back(Json{{"twice", std::move(doubled)}, {"gain", each.gain}});
  }
  return Json{{"cluster", what_if.cluster},
              {"base_mops", what_if.base_mops > 0 ? Json(what_if.base_mops) : Json()},
              {"runs", what_if.runs},
              {"seconds", what_if.seconds},
              {"not_run", what_if.not_run.empty() ? Json() : Json(what_if.not_run)},
              {"tried", std::move(tried)},
              {"failed", what_if.failed}};
}

std::string advice_line(const Advice& advice, const Explanation& it, std::size_t width) {
  const char* how = !it.by_runs() ? "" : advice.by_run ? " (simulated)" : " (closed form)";
  const std::string what = fmt::format(
      "{:>7}: {} Mops, then {}{}", gain(advice.factor),
      number_text(rate_of(*it.record) * advice.factor) + (advice.at_least ? " or more" : ""), advice.then, how);
  std::string line = fmt::format("  {:<66} {}\n", advice.change, what);
  if (width == 0 || line.size() <= width + 1) return line;
  return wrap_lines(fmt::format("  {} {}\n", advice.change, what), width);
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

std::string Explanation::limit_sentence() const {
  if (!diagnosis.binding) return diagnosis.undecided + ".";
  const Limit& limit = *diagnosis.binding;
  std::string out = fmt::format("The limit is {}{}: {}.", words_for(limit.load.resource), place(limit),
                                meaning(limit, diagnosis.loads));
  const char* how = by_runs() ? ", simulated" : "";
  if (!diagnosis.second) return out + (by_runs() ? fmt::format(" Twice of it gives {}{}.", gain(limit.gain), how) : "");
  const Limit& second = *diagnosis.second;
  return out +
         fmt::format(" Near it is {}{}: {}. Twice of the first gives {}, twice of the second {}, twice of both {}{}.",
                     words_for(second.load.resource), place(second), meaning(second, diagnosis.loads), gain(limit.gain),
                     gain(second.gain), gain(diagnosis.gain_of_both), how);
}

std::string Explanation::next_sentence() const {
  if (!diagnosis.binding || !diagnosis.next) return "";
  const double rate = rate_of(*record) * diagnosis.lifted_factor;
  return fmt::format("If it were lifted, {}{} would be the next limit, at {} Mops ({}{}).",
                     words_for(diagnosis.next->load.resource), place(*diagnosis.next), number_text(rate),
                     gain(diagnosis.lifted_factor), by_runs() ? ", closed form" : "");
}

Explanation explain(const Record& record, const WhatIf* what_if) {
  Explanation out;
  out.record = &record;
  out.what_if = what_if;
  const std::optional<Prediction> prediction = prediction_of(record);
  if (out.by_runs()) {
    out.diagnosis = what_if->diagnosis;
    out.advice = what_if->advice;
    if (!out.record->environment.value("simulated", false))  // its loads are those of the hardware
      out.diagnosis.loads = resource_loads(record, prediction ? &*prediction : nullptr);
    return out;
  }
  out.diagnosis = diagnose(resource_loads(record, prediction ? &*prediction : nullptr));
  out.advice = advise(record, prediction, out.diagnosis);
  return out;
}

std::string explain_text(const Record& record, std::size_t width, const WhatIf* what_if) {
  std::string out = heading(record);
  if (record.status == RecordStatus::failed) return out + "FAILED: " + record.reason + "\n";
  const Explanation it = explain(record, what_if);
  out += fmt::format("{} {}Mops. {}", number_text(rate_of(record)),
                     record.environment.value("simulated", false) ? "simulated " : "", it.limit_sentence());
  const std::string next = it.next_sentence();
  out = wrap_lines(out + (next.empty() ? "" : " " + next) + "\n\n", width);
  if (!it.diagnosis.loads.server.empty()) out += load_table(it, width) + "\n";
  if (what_if != nullptr) {
    const bool simulated = record.environment.value("simulated", false);
    out += wrap_lines(runs_text(*what_if, rate_of(record), simulated) + "\n\n", width);
  }
  if (it.diagnosis.binding && it.advice.empty()) {
    out += "No change that the model knows lifts this limit by 3 % or more.\n";
  }
  for (const Advice& advice : it.advice) out += advice_line(advice, it, width);
  return out;
}

Json explain_json(const Record& record, const WhatIf* what_if) {
  Json json{{"id", point_id(record)},
            {"title", point_title(record)},
            {"fabric", record.environment.at("fabric")},
            {"simulated", record.environment.at("simulated")}};
  if (record.status == RecordStatus::failed) {
    json["failed"] = record.reason;
    return json;
  }
  const Explanation it = explain(record, what_if);
  json["rate_mops"] = rate_of(record);
  json["what_if"] = what_if != nullptr ? runs_json(*what_if) : Json();
  json["limit"] = it.diagnosis.binding ? limit_json(*it.diagnosis.binding, it.by_runs()) : Json();
  json["limits"] = Json::array();
  for (const auto& limit : {it.diagnosis.binding, it.diagnosis.second}) {
    if (limit) json["limits"].push_back(limit_json(*limit, it.by_runs()));
  }
  json["gain_of_all"] = it.diagnosis.second    ? it.diagnosis.gain_of_both
                        : it.diagnosis.binding ? it.diagnosis.binding->gain
                                               : 1;
  json["sentence"] = it.limit_sentence();
  json["next"] = it.diagnosis.next ? limit_json(*it.diagnosis.next, false) : Json();
  json["next_sentence"] = it.next_sentence();
  json["lifted_factor"] = it.diagnosis.lifted_factor > 0 ? Json(it.diagnosis.lifted_factor) : Json();
  json["measured"] = it.diagnosis.loads.measured;
  json["loads"] = loads_json(it.diagnosis.loads.server);
  json["peer_loads"] = loads_json(it.diagnosis.loads.peers);
  json["advice"] = Json::array();
  for (const Advice& advice : it.advice) {
    json["advice"].push_back(Json{{"change", advice.change},
                                  {"factor", advice.factor},
                                  {"at_least", advice.at_least},
                                  {"then", advice.then},
                                  {"options", advice.options},
                                  {"by", source(advice.by_run)}});
  }
  return json;
}

}  // namespace verbscope
