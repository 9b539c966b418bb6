#include "microbench/frame/outcome.hpp"

#include <cmath>

namespace verbscope {

Json role_result(const Role& role, Picos window, const std::vector<int>& cores, std::string& failure) {
  double rate = 0;
  std::uint64_t ops = 0;
  Json threads = Json::array();
  for (std::size_t t = 0; t < role.threads(); ++t) {
    const ThreadResult result = role.thread_result(t);
    rate += result.rate_mops;
    ops += result.window_ops;
    threads.push_back(Json{{"core", cores.at(t)},
                           {"rate_mops", result.rate_mops},
                           {"ops", result.window_ops},
                           {"window_s", to_seconds(result.window)}});
    if (role.counted() && role.workload(t).counts() && result.rate_mops <= 0 && failure.empty()) {
      failure = fmt::format("{}: thread {} completed no operation in the measured window", role.name(), t);
    }
  }
  const double window_s = to_seconds(window);
  Json json{{"rate_mops", rate},
            {"window_s", window_s},
            {"window_ops", static_cast<std::uint64_t>(std::llround(rate * 1e6 * window_s))},
            {"ops", ops},
            {"threads", threads}};
  json.update(role.results());
  return json;
}

void take_rate_of_clients(Json& result) {
  double rate = 0;
  std::uint64_t ops = 0;
  Json threads = Json::array();
  for (const Json& client : result.at("clients")) {
    const Json& theirs = client.at("result");
    rate += theirs.at("rate_mops").get<double>();
    ops += theirs.at("ops").get<std::uint64_t>();
    for (Json thread : theirs.at("threads")) {
      thread["node"] = client.at("node");
      threads.push_back(thread);
    }
  }
  result["rate_mops"] = rate;
  result["window_ops"] = std::llround(rate * 1e6 * result.at("window_s").get<double>());
  result["ops"] = ops;
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
  } else if (delivery.lost() > 0 && op.transport == Transport::rc) {
    failure =
        fmt::format("{} of {} messages did not arrive, on a reliable transport", delivery.lost(), delivery.expected);
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
