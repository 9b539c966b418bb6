#include "counters/pcm_iio.hpp"

#include <algorithm>
#include <array>

#include "common/error.hpp"

namespace verbscope {

namespace {

// Every row has these columns; what follows (IOTLB and other counts of a whole stack) is only in a stack's first row.
constexpr std::array<std::string_view, 4> kDirections = {"IB write", "IB read", "OB read", "OB write"};

// Skylake's list of events says "IB write (bytes)", later ones "IB write".
std::string_view without_unit(std::string_view name) {
  constexpr std::string_view kUnit = " (bytes)";
  return name.ends_with(kUnit) ? name.substr(0, name.size() - kUnit.size()) : name;
}

}  // namespace

LineKind PcmIioFormat::take(const Fields& fields, Sums& sums) {
  if (fields[0] == "Socket" && fields.size() > 1) return take_header(fields) ? LineKind::header : LineKind::text;
  if (first_number_ == 0 || fields.size() < 2 || !fields[0].starts_with("Socket")) return LineKind::text;
  return take_row(fields, sums);
}

bool PcmIioFormat::take_header(const Fields& fields) {
  const auto part = std::ranges::find(fields, "Part");
  if (part == fields.end()) return false;
  const auto root_port = std::ranges::find(fields, "Root Port");
  root_port_field_.reset();
  if (root_port < part) root_port_field_ = static_cast<std::size_t>(root_port - fields.begin());
  first_number_ = static_cast<std::size_t>(part - fields.begin()) + 1;
  counts_.clear();
  for (auto name = part + 1; name != fields.end(); ++name) counts_.emplace_back(without_unit(*name));
  const bool known = counts_.size() >= kDirections.size() &&
                     std::is_permutation(kDirections.begin(), kDirections.end(), counts_.begin());
  if (!known) {
    fail("pcm-iio: its counts do not begin with IB write, IB read, OB read and OB write but with \"{}\"",
         counts_.empty() ? "" : counts_.front().substr(0, 100));
  }
  return true;
}

LineKind PcmIioFormat::take_row(const Fields& fields, Sums& sums) const {
  const std::size_t last = first_number_ + counts_.size();
  if (fields.size() < first_number_ + kDirections.size() || fields.size() > last) return LineKind::damaged;
  std::vector<std::uint64_t> values(fields.size() - first_number_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!parse_count(fields[first_number_ + i], values[i])) return LineKind::damaged;
  }
  const bool ours = root_port_.empty() || !root_port_field_ || fields[*root_port_field_] == root_port_;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Counts of a stack cannot be told apart by root port.
    const bool of_the_port = i < kDirections.size();
    if ((ours || !of_the_port) && !add_count(sums, counts_[i], values[i])) return LineKind::damaged;
  }
  return LineKind::row;
}

std::vector<EventRule> PcmIioFormat::rules() const {
  return {{"payload_bytes_to_nic", {"IB read", "OB write"}}, {"payload_bytes_to_host", {"IB write", "OB read"}}};
}

std::string PcmIioFormat::blind() const {
  const std::string scope = root_port_.empty() || !root_port_field_
                                ? "which device it was (all root ports are summed)"
                                : "devices of root port " + root_port_ + " apart from one another";
  return scope +
         "; lines, TLPs and headers, MMIO writes as such (their bytes are in payload_bytes_to_nic); scaled, as events "
         "take turns";
}

}  // namespace verbscope
