#include "common/record.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>

#include "common/clock.hpp"
#include "common/text.hpp"

namespace verbscope {

namespace {

// Checks the rules of records beyond the types of fields, for writing and reading.
void check_record(const Record& record, const std::string& where) {
  if (record.benchmark.empty()) fail("{}: key \"benchmark\" is empty", where);
  const bool failed = record.status == RecordStatus::failed;
  if (failed == record.reason.empty()) {
    fail("{}: key \"reason\" {}", where,
         failed ? "is empty in a failed record" : "is not empty in a record that did not fail");
  }
  for (const auto& counter : record.counters) {
    if (!std::isfinite(counter.window_s) || counter.window_s < 0) {
      fail("{}: counters of {}: key \"window_s\" is not a length of time", where, dump_json(counter.source));
    }
  }
  JsonFields environment(record.environment, where + ": key \"environment\"");
  const auto fabric = environment.require<std::string>("fabric");
  if (!is_fabric(fabric))
    environment.fail_key("fabric", "expected verbs, sim:NAME, null or host, got " + dump_json(fabric));
  if (environment.require<bool>("simulated") != is_simulated(fabric)) {
    environment.fail_key("simulated", "does not fit the fabric " + dump_json(fabric));
  }
}

Json counter_to_json(const CounterReport& counter) {
  Json events = Json::object();
  PcieCounts::each(counter.events, [&](const char* name, std::uint64_t value) {
    events[name] = counter.sees(name) ? Json(value) : Json();
  });
  return Json{{"source", counter.source},     {"node", counter.node}, {"blind", counter.blind},
              {"window_s", counter.window_s}, {"events", events},     {"extra", counter.extra}};
}

CounterReport counter_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  CounterReport counter;
  counter.source = fields.require<std::string>("source");
  counter.node = fields.require<std::string>("node");
  counter.blind = fields.require<std::string>("blind");
  counter.window_s = fields.require<double>("window_s");
  JsonFields events = fields.object("events");
  PcieCounts::each(counter.events, [&](const char* name, std::uint64_t& value) {
    if (events.at(name).is_null()) {
      counter.unseen.emplace_back(name);
    } else {
      value = events.require<std::uint64_t>(name);
    }
  });
  events.reject_unknown();
  fields.object("extra");
  counter.extra = fields.at("extra");
  fields.reject_unknown();
  return counter;
}

RecordStatus status_from_string(const std::string& text, const JsonFields& fields) {
  for (const auto status : {RecordStatus::ok, RecordStatus::failed, RecordStatus::imported}) {
    if (text == to_string(status)) return status;
  }
  fields.fail_key("status", "expected ok, failed or imported, got " + dump_json(text));
}

Json require_object(JsonFields& fields, const std::string& key) {
  fields.object(key);
  return fields.at(key);
}

Json sorted(const Json& value) {
  Json out = value;
  if (value.is_array()) {
    for (auto& element : out) element = sorted(element);
  } else if (value.is_object()) {
    std::map<std::string, Json> keys;
    for (const auto& [key, member] : value.items()) keys[key] = sorted(member);
    out = keys;
  }
  return out;
}

}  // namespace

const char* to_string(RecordStatus status) {
  return status == RecordStatus::ok ? "ok" : status == RecordStatus::failed ? "failed" : "imported";
}

bool CounterReport::sees(const std::string& event) const {
  return std::ranges::find(unseen, event) == unseen.end();
}

double operations_in_window(const Json& result, const CounterReport& report) {
  const auto number = [&result](const char* key) {
    const auto found = result.find(key);
    return found != result.end() && found->is_number() ? found->get<double>() : 0;
  };
  const double ops = number("window_ops");
  const double window_s = number("window_s");
  return window_s > 0 && report.window_s != window_s ? ops * report.window_s / window_s : ops;
}

Json to_json(const Record& record) {
  check_record(record, "record");
  Json counters = Json::array();
  for (const auto& counter : record.counters) counters.push_back(counter_to_json(counter));
  Json out = Json::object();
  out["schema"] = kRecordSchema;
  out["benchmark"] = record.benchmark;
  out["status"] = to_string(record.status);
  out["reason"] = record.reason;
  out["config"] = record.config;
  out["result"] = record.result;
  out["counters"] = std::move(counters);
  out["prediction"] = record.prediction;
  out["environment"] = record.environment;
  return out;
}

Record record_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  const auto schema = fields.require<std::string>("schema");
  if (schema != kRecordSchema) {
    throw UnknownSchema(fmt::format("{}: record schema {} is not known; this program reads \"{}\"", where,
                                    dump_json(schema), kRecordSchema));
  }
  Record record;
  record.benchmark = fields.require<std::string>("benchmark");
  record.status = status_from_string(fields.require<std::string>("status"), fields);
  record.reason = fields.require<std::string>("reason");
  record.config = require_object(fields, "config");
  record.result = require_object(fields, "result");
  const auto counters = fields.require<std::vector<Json>>("counters");
  for (std::size_t i = 0; i < counters.size(); ++i) {
    record.counters.push_back(counter_from_json(counters[i], fmt::format("{}: counters[{}]", where, i)));
  }
  record.prediction = fields.at("prediction");
  if (!record.prediction.is_null()) fields.object("prediction");
  record.environment = require_object(fields, "environment");
  fields.reject_unknown();
  check_record(record, where);
  return record;
}

std::string point_key(const Json& point) {
  return dump_json(sorted(point));
}

namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto start = line.find(": ");
    if (start != std::string::npos) return line.substr(start + 2);
  }
  return "unknown";
}

// The current time as ISO 8601 with the zone: "2026-11-20T10:52:10Z".
std::string utc_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

bool is_simulated(const std::string& fabric) {
  return fabric.starts_with(kSimulatedPrefix);
}

bool is_fabric(const std::string& fabric) {
  return fabric == "verbs" || fabric == "null" || fabric == kHostFabric ||
         (is_simulated(fabric) && fabric.size() > kSimulatedPrefix.size());
}

Json make_environment(const std::string& fabric, const std::vector<std::string>& command_line) {
  if (!is_fabric(fabric)) fail_usage("fabric: expected verbs, sim:NAME, null or host, got \"{}\"", fabric);
  utsname host{};
  check("uname", ::uname(&host));
  const BuildInfo build = build_info();
  Json out = Json::object();
  out["fabric"] = fabric;
  out["simulated"] = is_simulated(fabric);
  out["hostname"] = host.nodename;
  out["kernel"] = fmt::format("{} {}", host.sysname, host.release);
  out["cpu_model"] = cpu_model();
  out["cores"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  out["clock"] = is_simulated(fabric) ? "simulated" : TscClock::describe();
  out["version"] = build.version;
  out["git_revision"] = build.git_revision;
  out["build_type"] = build.build_type;
  out["compiler"] = build.compiler;
  out["build_flags"] = build.flags;
  out["time_utc"] = utc_time();
  out["command_line"] = without_secrets(command_line);
  return out;
}

}  // namespace verbscope
