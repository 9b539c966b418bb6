#include "harness/evidence/fit_rows.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <random>

namespace verbscope {
namespace {

constexpr std::string_view kBetween = " rows, seed ";

// Leaves out rows that count by a shape of which there are too few.
void drop_lone_shapes(const std::vector<EvidenceRow>& rows, std::vector<std::size_t>& taken) {
  std::map<std::string, std::size_t> sources;
  for (const std::size_t i : taken) ++sources[rows[i].point.where];
  std::erase_if(taken, [&](std::size_t i) { return rows[i].by_shape && sources[rows[i].point.where] < kMinShape; });
}

}  // namespace

std::string JointFitName::text() const {
  return fmt::format("{}{}{}", rows, kBetween, seed);
}

std::optional<JointFitName> parse_joint_fit(const std::string& text) {
  JointFitName name;
  const std::size_t between = text.find(kBetween);
  if (between == std::string::npos) return std::nullopt;
  std::from_chars(text.data(), text.data() + between, name.rows);
  std::from_chars(text.data() + between + kBetween.size(), text.data() + text.size(), name.seed);
  return name.text() == text ? std::optional(name) : std::nullopt;
}

std::vector<std::size_t> rows_to_fit(const std::vector<EvidenceRow>& rows, const std::string& cluster,
                                     const JointFitName& fit) {
  std::vector<std::size_t> taken, measured;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PublishedPoint& point = rows[i].point;
    if (point.cluster != cluster || !rows[i].not_run.empty() || point.modelled()) continue;
    if (point.comparison != Comparison::equals) continue;
    if (!rows[i].columns.empty()) {
      measured.push_back(i);
    } else if (point.calibration && taken.size() < fit.rows) {
      taken.push_back(i);
    }
  }
  for (const std::size_t i : drawn(measured.size(), fit.rows - taken.size(), fit.seed)) taken.push_back(measured[i]);
  drop_lone_shapes(rows, taken);
  std::ranges::sort(taken);
  return taken;
}

std::vector<std::vector<std::size_t>> folds(std::size_t size, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> all(size);
  std::iota(all.begin(), all.end(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < size; ++i) std::swap(all[i], all[i + random() % (size - i)]);
  std::vector<std::vector<std::size_t>> out(count);
  for (std::size_t i = 0; i < size; ++i) out[i % count].push_back(all[i]);
  for (auto& fold : out) std::ranges::sort(fold);
  return out;
}

}  // namespace verbscope
