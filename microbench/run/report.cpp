#include "microbench/run/report.hpp"

#include <algorithm>
#include <cmath>

#include "common/error.hpp"
#include "microbench/run/report_fields.hpp"

namespace verbscope {

namespace {

void set_rate_of_clients(NodeReport& own, const std::vector<NodeReport>& clients, bool by_count) {
  double rate = 0;
  std::uint64_t ops = 0;
  double longest_s = 0;
  own.threads.clear();
  for (const NodeReport& client : clients) {
    rate += client.rate_mops;
    ops += client.ops;
    if (client.rate_mops > 0) {
      longest_s = std::max(longest_s, static_cast<double>(client.ops) / client.rate_mops * 1e-6);
    }
    for (const ThreadReport& thread : client.threads) own.threads.emplace_back(thread).node = client.node;
  }
  set_rate(own, rate, ops, by_count ? std::optional(longest_s) : std::nullopt);
}

void add_rate_of_clients(NodeReport& own, const std::vector<NodeReport>& clients, bool by_count) {
  double in = 0;
  std::uint64_t ops = own.ops;
  for (const NodeReport& client : clients) {
    in += client.rate_mops;
    ops += client.ops;
    for (const ThreadReport& thread : client.threads) own.threads.emplace_back(thread).node = client.node;
  }
  own.rate_out_mops = own.rate_mops;
  own.rate_in_mops = in;
  set_rate(own, *own.rate_out_mops + in, ops, std::nullopt);
  if (by_count) own.window_ops = ops;
}

void check_delivery(const Delivery& delivery, const Operation& op, std::string& failure) {
  if (!failure.empty()) return;
  if (delivery.validation.wrong > 0) {
    failure = fmt::format("validation: {} of {} messages had a wrong length, immediate or byte",
                          delivery.validation.wrong, delivery.validation.checked);
  } else if (delivery.lost() > 0 && op.reliable()) {
    failure =
        fmt::format("{} of {} messages did not arrive, on a reliable transport", delivery.lost(), delivery.expected);
  } else if (op.validate && delivery.lost() > 0 && delivery.validation.checked == 0) {
    failure = "validation: nothing arrived that could be checked";
  }
}

}  // namespace

CpuReport cpu_report(const IntervalUse& use) {
  return {use.cpu.user_s, use.cpu.system_s, (use.cpu.user_s + use.cpu.system_s) / to_seconds(use.time)};
}

void set_rate(NodeReport& report, double rate, std::uint64_t ops, std::optional<double> span_s) {
  const bool by_count = span_s.has_value() && *span_s > 0;
  report.rate_mops = by_count ? static_cast<double>(ops) / *span_s * 1e-6 : rate;
  if (by_count) report.window_s = *span_s;
  report.window_ops = by_count ? ops : static_cast<std::uint64_t>(std::llround(rate * 1e6 * report.window_s));
  report.ops = ops;
}

PointReports make_result(PointReports reports, const Plan& plan, std::string& failure) {
  if (reports.clients) {
    for (const NodeReport& client : *reports.clients) reports.own.delivery += client.delivery;
    const bool by_count = plan.schedule.iters.has_value();
    if (plan.operation.both_ways) {
      add_rate_of_clients(reports.own, *reports.clients, by_count);
    } else if (plan.operation.counted == Side::client) {
      set_rate_of_clients(reports.own, *reports.clients, by_count);
    }
  }
  check_delivery(reports.own.delivery, plan.operation, failure);
  return reports;
}

Json result_json(const PointReports& result) {
  Json json = fields_to_json(result.own);
  if (!result.clients) return json;
  Json& clients = json["clients"] = Json::array();
  for (const NodeReport& client : *result.clients) {
    clients.push_back(Json{{"node", client.node}, {"result", fields_to_json(client)}});
  }
  return json;
}

void fill_record(Record& record, const Outcome& outcome, const OptionTable& table, Json environment) {
  record.status = outcome.failure.empty() ? RecordStatus::ok : RecordStatus::failed;
  record.reason = outcome.failure;
  record.config = table.values();
  record.config.update(outcome.config);
  record.result = outcome.result;
  record.counters = outcome.counters;
  record.prediction = outcome.prediction;
  if (!outcome.no_prediction.empty()) record.result["no_prediction"] = outcome.no_prediction;
  record.environment = std::move(environment);
  record.environment["options_set"] = table.changed();
  record.environment.update(outcome.environment);
}

double sum_over_clients(const Json& result, const std::string& key) {
  double sum = 0;
  if (!result.contains("clients")) return sum;
  for (const Json& client : result.at("clients")) {
    JsonFields theirs(client.at("result"), "result of " + client.value("node", ""));
    sum += theirs.require<double>(key);
  }
  return sum;
}

Histogram take_client_histograms(Json& result, const std::string& key) {
  Histogram all;
  if (!result.contains("clients")) return all;
  for (Json& client : result.at("clients")) {
    Json& theirs = client.at("result");
    const std::string where = "result of " + client.value("node", "");
    all.merge(Histogram::unpack(JsonFields(theirs, where).at(key), where + ": " + key));
    theirs.erase(key);
  }
  return all;
}

}  // namespace verbscope
