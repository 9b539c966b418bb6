#include "microbench/run/outcome.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace verbscope {
namespace {

void judge_thread(const Role& role, std::size_t thread, const ThreadResult& result, std::string& failure) {
  if (!role.counted() || !role.workload(thread).counts() || result.rate_mops > 0 || !failure.empty()) return;
  const std::uint32_t step = role.plan().operation.signal_every;
  failure = fmt::format("{}: thread {} completed no operation in the measured window: it needs a longer --duration{}",
                        role.name(), thread, step > 1 ? fmt::format(", or a --cq_mod under {}", step) : "");
}

// What a time and a count of operations come to. By time: each thread's rate holds for the whole window. By --iters:
// threads end one after the other, so it is the operations over the time that all of them took together.
void set_rate(Json& result, double rate, std::uint64_t ops, std::optional<double> span_s) {
  const bool by_count = span_s.has_value() && *span_s > 0;
  result["rate_mops"] = by_count ? static_cast<double>(ops) / *span_s * 1e-6 : rate;
  result["window_ops"] =
      by_count ? ops : static_cast<std::uint64_t>(std::llround(rate * 1e6 * result.at("window_s").get<double>()));
  result["ops"] = ops;
}

}  // namespace

Json role_result(const Role& role, Picos window, const std::vector<int>& cores, std::string& failure) {
  double rate = 0;
  std::uint64_t ops = 0;
  Picos begin = Picos::max(), end{0};
  Json threads = Json::array();
  for (std::size_t t = 0; t < role.threads(); ++t) {
    const ThreadResult result = role.thread_result(t);
    rate += result.rate_mops;
    ops += result.window_ops;
    if (result.window_ops > 0) {
      begin = std::min(begin, result.begin);
      end = std::max(end, result.begin + result.window);
    }
    threads.push_back(Json{{"core", cores.at(t)},
                           {"rate_mops", result.rate_mops},
                           {"ops", result.window_ops},
                           {"window_s", to_seconds(result.window)}});
    if (const std::uint64_t round = role.workload(t).round(); round > 0) {
      threads.back()["rounds"] = static_cast<double>(result.window_ops) / static_cast<double>(round);
    }
    judge_thread(role, t, result, failure);
  }
  Json json{{"window_s", to_seconds(window)}, {"threads", threads}};
  std::optional<double> span_s;
  if (role.plan().schedule.iters && ops > 0) span_s = to_seconds(end - begin);
  set_rate(json, rate, ops, span_s);
  json.update(role.results());
  return json;
}

void take_rate_of_clients(Json& result, bool by_count) {
  double rate = 0;
  std::uint64_t ops = 0;
  double longest_s = 0;
  Json threads = Json::array();
  for (const Json& client : result.at("clients")) {
    const Json& theirs = client.at("result");
    const auto client_rate = theirs.at("rate_mops").get<double>();
    const auto client_ops = theirs.at("ops").get<std::uint64_t>();
    rate += client_rate;
    ops += client_ops;
    if (client_rate > 0) longest_s = std::max(longest_s, static_cast<double>(client_ops) / client_rate * 1e-6);
    for (Json thread : theirs.at("threads")) {
      thread["node"] = client.at("node");
      threads.push_back(thread);
    }
  }
  set_rate(result, rate, ops, by_count ? std::optional(longest_s) : std::nullopt);
  result["threads"] = threads;
}

Json delivery_json(const Delivery& delivery, bool validated) {
  Json json{
      {"messages_expected", delivery.expected}, {"messages_received", delivery.received}, {"lost", delivery.lost()}};
  json["validation"] = validated ? Json{{"checked", delivery.checked}, {"wrong", delivery.wrong}} : Json();
  return json;
}

void judge_delivery(const Delivery& delivery, const Operation& op, std::string& failure) {
  if (!failure.empty()) return;
  if (delivery.wrong > 0) {
    failure = fmt::format("validation: {} of {} messages had a wrong length, immediate or byte", delivery.wrong,
                          delivery.checked);
  } else if (delivery.lost() > 0 && op.reliable()) {
    failure =
        fmt::format("{} of {} messages did not arrive, on a reliable transport", delivery.lost(), delivery.expected);
  } else if (op.validate && delivery.lost() > 0 && delivery.checked == 0) {
    failure = "validation: nothing arrived that could be checked";
  }
}

Json plan_json(const Plan& plan) {
  return Json{{"size", plan.operation.payload},
              {"inlined", plan.operation.inlined},
              {"cq_mod", plan.operation.signal_every},
              {"clients", plan.topology.clients},
              {"client_threads", plan.topology.client_threads},
              {"ports", plan.topology.ports},
              {"duration_s", plan.schedule.iters ? Json() : Json(to_seconds(plan.schedule.duration))},
              {"warmup_s", to_seconds(plan.schedule.warmup)},
              {"timeout_s", to_seconds(plan.schedule.timeout)}};
}

Json cpu_json(const CpuSeconds& cpu, Picos window) {
  const double seconds = to_seconds(window);
  return Json{{"user_s", cpu.user_s}, {"system_s", cpu.system_s}, {"cores", (cpu.user_s + cpu.system_s) / seconds}};
}

}  // namespace verbscope
