#include "analysis/explain.hpp"

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

Json limit_json(const Limit& limit) {
  return Json{{"resource", to_string(limit.load.resource)},
              {"words", words_for(limit.load.resource)},
              {"node", limit.load.node},
              {"load", limit.load.utilisation},
              {"gain", limit.gain}};
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
  if (!diagnosis.second) return out;
  const Limit& second = *diagnosis.second;
  return out +
         fmt::format(" Near it is {}{}: {}. Twice of the first gives {}, twice of the second {}, twice of both {}.",
                     words_for(second.load.resource), place(second), meaning(second, diagnosis.loads), gain(limit.gain),
                     gain(second.gain), gain(diagnosis.gain_of_both));
}

std::string Explanation::next_sentence() const {
  if (!diagnosis.binding || !diagnosis.next) return "";
  const double rate = rate_of(*record) * diagnosis.lifted_factor;
  return fmt::format("If it were lifted, {}{} would be the next limit, at {} Mops ({}).",
                     words_for(diagnosis.next->load.resource), place(*diagnosis.next), number_text(rate),
                     gain(diagnosis.lifted_factor));
}

Explanation explain(const Record& record) {
  Explanation out;
  out.record = &record;
  const std::optional<Prediction> prediction = prediction_of(record);
  out.diagnosis = diagnose(resource_loads(record, prediction ? &*prediction : nullptr));
  out.advice = advise(record, prediction, out.diagnosis);
  return out;
}

std::string explain_text(const Record& record, std::size_t width) {
  std::string out = heading(record);
  if (record.status == RecordStatus::failed) return out + "FAILED: " + record.reason + "\n";
  const Explanation it = explain(record);
  out += fmt::format("{} {}Mops. {}", number_text(rate_of(record)),
                     record.environment.value("simulated", false) ? "simulated " : "", it.limit_sentence());
  const std::string next = it.next_sentence();
  out = wrap_lines(out + (next.empty() ? "" : " " + next) + "\n\n", width);
  if (!it.diagnosis.loads.server.empty()) out += load_table(it, width) + "\n";
  if (it.diagnosis.binding && it.advice.empty()) {
    out += "No change that the model knows lifts this limit by 3 % or more.\n";
  }
  for (const Advice& advice : it.advice) {
    const std::string what =
        fmt::format("{:>7}: {} Mops, then {}", gain(advice.factor),
                    number_text(rate_of(record) * advice.factor) + (advice.at_least ? " or more" : ""), advice.then);
    const std::string line = fmt::format("  {:<66} {}\n", advice.change, what);
    out += width == 0 || line.size() <= width + 1 ? line
                                                  : wrap_lines(fmt::format("  {} {}\n", advice.change, what), width);
  }
  return out;
}

Json explain_json(const Record& record) {
  Json json{{"id", point_id(record)},
            {"title", point_title(record)},
            {"fabric", record.environment.at("fabric")},
            {"simulated", record.environment.at("simulated")}};
  if (record.status == RecordStatus::failed) {
    json["failed"] = record.reason;
    return json;
  }
  const Explanation it = explain(record);
  json["rate_mops"] = rate_of(record);
  json["limit"] = it.diagnosis.binding ? limit_json(*it.diagnosis.binding) : Json();
  json["limits"] = Json::array();
  for (const auto& limit : {it.diagnosis.binding, it.diagnosis.second}) {
    if (limit) json["limits"].push_back(limit_json(*limit));
  }
  json["gain_of_all"] = it.diagnosis.second    ? it.diagnosis.gain_of_both
                        : it.diagnosis.binding ? it.diagnosis.binding->gain
                                               : 1;
  json["sentence"] = it.limit_sentence();
  json["next"] = it.diagnosis.next ? limit_json(*it.diagnosis.next) : Json();
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
                                  {"options", advice.options}});
  }
  return json;
}

}  // namespace verbscope
