#include "microbench/run/machine_rates.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/text.hpp"

namespace verbscope {

void add_machine_rates(Outcome& outcome) {
  Json& result = outcome.result;
  std::vector<double> rates{result.at("rate_mops")};
  std::vector<std::string> idle;
  for (const Json& client : result.value("clients", Json::array())) {
    rates.push_back(client.at("result").at("rate_mops"));
    if (rates.back() <= 0) idle.push_back(client.at("node"));
  }
  const auto [low, high] = std::ranges::minmax(rates);
  const double mean = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
  result[kMachineRate] = mean;
  result["mops_spread"] = mean > 0 ? Json((high - low) / mean) : Json();
  if (!idle.empty() && outcome.failure.empty()) {
    outcome.failure = fmt::format("{} completed no operation in the measured interval: give a longer --duration",
                                  fmt::join(idle, ", "));
  }
}

std::string machine_rates_line(const Json& result) {
  if (!result.contains(kMachineRate)) return "";
  return fmt::format(
      "  mean of {} machines: {} Mops, spread {:.1f} %\n", result.value("clients", Json::array()).size() + 1,
      with_digits(result.at(kMachineRate).get<double>(), 3), 100 * result.at("mops_spread").get<double>());
}

}  // namespace verbscope
