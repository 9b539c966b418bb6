#include "analysis/explain.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/points.hpp"

namespace verbscope {
namespace {

std::string log_evidence(const Record& record) {
  const auto result = [&record](const char* key) { return number_at(record.result, key).value_or(0); };
  return fmt::format("operations wait for it {} of the time; {:.1f} appends per sync of {:.0f} us, 99 % {:.0f} us",
                     share_text(waited_for_log(record)), result("log_appends_per_sync"),
                     result("log_sync_p50_ns") / 1e3, result("log_sync_p99_ns") / 1e3);
}

// The evidence for a limit besides its gain, as a clause; may be empty.
std::string evidence(const Limit& limit, const Explanation& it) {
  const Load& load = limit.load;
  const auto per_op = [&it](const char* key) { return extra_per_op(*it.record, key).value_or(0); };
  const auto share_of_callers = [&it](const char* key) {
    return share_text(number_at(it.record->result, key).value_or(0));
  };
  switch (load.resource) {
    case Resource::mmio: {
      const Load* link = find_load(limit.of_peer ? it.loads.peers : it.loads.server, Resource::pcie_to_nic);
      if (link == nullptr || load.utilisation <= 0) break;
      return fmt::format("{} of the link's time, which is {} busy", share_text(load.utilisation),
                         share_text(link->utilisation));
    }
    case Resource::wqe_cache:
      return fmt::format("{:.2f} WQE cache lines re-read per operation", it.loads.wqes_reread);
    case Resource::qp_context_cache:
      return fmt::format("{:.2f} misses per operation", per_op("qp_context_misses"));
    case Resource::translation_cache:
      return fmt::format("{:.2f} misses per operation", per_op("translation_misses"));
    case Resource::recv_queue: {
      const double ops = number_at(it.record->result, "window_ops").value_or(0);
      const auto per_window_op = [&](const char* key) { return ops > 0 ? counted_in_all(*it.record, key) / ops : 0; };
      if (const double naks = per_window_op("rnr_naks_sent"); naks > 0)
        return fmt::format("{:.3g} RNR NAKs per operation", naks);
      if (const double lost = per_window_op("dropped_no_recv"); lost > 0)
        return fmt::format("{:.3g} messages dropped per operation", lost);
      if (const double waits = per_window_op("recv_waits"); waits > 0)
        return fmt::format("{:.3g} waits for a RECV per operation", waits);
      if (is_rpc(*it.record)) return "no RECVs are left for more credits";
      break;
    }
    case Resource::outstanding:
    case Resource::reads_outstanding:
      return "the program waits for its own operations to complete";
    case Resource::credits:
      return fmt::format("requests wait for credits {} of the time", share_of_callers("credits_waited_share"));
    case Resource::rate_limiter:
      return fmt::format("it holds packets {} of the time", share_of_callers("limiter_busy_share"));
    case Resource::timeouts:
      return fmt::format("requests wait for them {} of the time", share_of_callers("timed_out_share"));
    case Resource::log_device:
      return log_evidence(*it.record);
    case Resource::switch_queue:
      return fmt::format("up to {:.0f} kB; median round trip of a packet {:.0f} us",
                         counted_in_all(*it.record, "deepest_queue_bytes") / 1e3,
                         number_at(it.record->result, "rtt_p50_ns").value_or(0) / 1e3);
    default:
      break;
  }
  if (load.utilisation < kMinShownLoad) return "";
  std::string out =
      fmt::format("{} {}", share_text(load.utilisation), it.loads.measured ? "busy" : "of what the model allows");
  if (is_unit(load.resource) && load.rereading >= kMinShownLoad)
    out += fmt::format(", {} of it for WQE re-reads", share_text(load.rereading / load.utilisation));
  return out;
}

std::string with_evidence(const Limit& limit, const Explanation& it) {
  const std::string seen = evidence(limit, it);
  return words_for(limit) + (seen.empty() ? "" : " (" + seen + ")");
}

Json heading_json(const Record& record) {
  return Json{{"id", point_id(record)},
              {"title", point_title(record)},
              {"fabric", record.environment.at("fabric")},
              {"simulated", record.environment.at("simulated")}};
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

Json runs_json(const SimulatedAnswer& runs) {
  Json tried = Json::array();
  for (const DoublingRun& each : runs.tried) {
    Json doubled = Json::array();
    for (const Resource resource : each.doubled) doubled.push_back(to_string(resource));
    tried.push_back(Json{{"twice", std::move(doubled)}, {"gain", each.gain}});
  }
  return Json{{"cluster", runs.cluster}, {"assumed", runs.assumed}, {"base_mops", runs.base_mops},
              {"runs", runs.runs},       {"seconds", runs.seconds}, {"tried", std::move(tried)},
              {"failed", runs.failed}};
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

std::string share_text(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

double Explanation::rate_mops() const {
  return number_at(record->result, "rate_mops").value_or(0);
}

bool Explanation::simulated() const {
  return record->environment.value("simulated", false);
}

const char* Explanation::gain_source() const {
  return runs ? "simulated" : "closed form";
}

// A run on simulated InfiniBand covers its stalls by the load of its RECVs.
std::vector<CountedStall> Explanation::stalls() const {
  const bool lossless = simulated() && !record->config.contains("flow_control");
  return lossless ? std::vector<CountedStall>{} : counted_stalls(*record);
}

std::string Explanation::limit_words() const {
  if (limits.empty()) return "not decided";
  std::vector<std::string> words;
  for (const Limit& each : limits) words.push_back(words_for(each));
  return fmt::format("{}", fmt::join(words, " and "));
}

std::string Explanation::limit_sentence() const {
  if (limits.empty()) return "Limit not decided: " + undecided + ".";
  if (limits.size() == 1) {
    const Limit& limit = limits.front();
    return fmt::format("Limit: {}. Doubling it: {} ({}).", with_evidence(limit, *this), gain_text(limit.gain),
                       gain_source());
  }
  std::vector<std::string> words, gains;
  for (const Limit& each : limits) {
    words.push_back(with_evidence(each, *this));
    gains.push_back(gain_text(each.gain));
  }
  return fmt::format("Limits that help only together: {}. Doubling one: {}; doubling all: {} ({}).",
                     fmt::join(words, " and "), fmt::join(gains, " or "), gain_text(gain_of_all), gain_source());
}

std::string Explanation::options_sentence() const {
  std::vector<std::string> parts;
  for (const Limit& each : limiting_options) parts.push_back(with_evidence(each, *this) + " " + gain_text(each.gain));
  return parts.empty()
             ? ""
             : fmt::format(" Other limiting options, with the gain from doubling each: {}.", fmt::join(parts, "; "));
}

std::optional<double> Explanation::gain_of(Resource resource) const {
  const Resource of = capacity(resource);
  if (runs) {
    for (const DoublingRun& each : runs->tried) {
      if (each.doubled.size() == 1 && each.doubled.front() == of) return each.gain;
    }
  }
  for (const Limit& each : limits) {
    if (capacity(each.load.resource) == of) return each.gain;
  }
  return std::nullopt;
}

bool Explanation::is_ruled_out(Resource resource) const {
  return runs && std::ranges::any_of(runs->tried, [&](const DoublingRun& each) {
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

std::string closed_form_limit(const Record& record) {
  return explain(record).limit_words();
}

Json failed_json(const Record& record) {
  Json json = heading_json(record);
  json["failed"] = record.reason;
  return json;
}

Json explain_json(const Explanation& it) {
  Json json = heading_json(*it.record);
  json["rate_mops"] = it.rate_mops();
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
  for (const CountedStall& each : it.stalls()) {
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
