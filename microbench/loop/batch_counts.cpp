#include "microbench/loop/batch_counts.hpp"

#include <numeric>

namespace verbscope {

Json BatchCounts::to_json() const {
  Json pairs = Json::array();
  std::uint64_t posts = 0, answers = 0;
  for (std::size_t n = 0; n < lists.size(); ++n) {
    if (lists[n] == 0) continue;
    pairs.push_back(Json::array({n, lists[n]}));
    posts += lists[n];
    answers += n * lists[n];
  }
  if (posts == 0) return Json();
  const auto percentile = [&](std::uint64_t percent) {
    std::uint64_t seen = 0;
    std::size_t n = 0;
    while ((seen += lists[n]) * 100 < posts * percent) ++n;
    return n;
  };
  return Json{{"mean", static_cast<double>(answers) / static_cast<double>(posts)},
              {"p50", percentile(50)},
              {"p99", percentile(99)},
              {"max", pairs.back()[0]},
              {"lists", pairs}};
}

std::vector<ListShare> list_shares(const Json& batches, int usual) {
  if (!batches.is_object()) return {{.length = usual}};
  std::vector<ListShare> shares;
  double all = 0;
  int step = 0;  // lists of all lengths share the queues
  for (const Json& each : batches.at("lists")) {
    const int length = each[0].get<int>();
    shares.push_back({.length = length, .answers = length * each[1].get<double>()});
    all += shares.back().answers;
    step = std::gcd(step, length);
  }
  for (ListShare& share : shares) {
    share.answers /= all;
    share.step = step;
  }
  return shares;
}

}  // namespace verbscope
