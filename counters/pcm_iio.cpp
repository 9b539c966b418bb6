#include "counters/pcm_iio.hpp"

#include <algorithm>
#include <array>

#include "common/error.hpp"

namespace verbscope {

namespace {

// Every row has these columns. The later ones (IOTLB and other counts of a whole stack) are only in a stack's first
// row.
constexpr std::array<std::string_view, 4> kDirections = {"IB write", "IB read", "OB read", "OB write"};

// Columns without counts.
constexpr std::array<std::string_view, 6> kTexts = {"Date", "Time", "Socket", "Root Port", "Name", "Part"};

// In Skylake's list of events the name is "IB write (bytes)", in later ones "IB write".
std::string_view without_unit(std::string_view name) {
  constexpr std::string_view kUnit = " (bytes)";
  return name.ends_with(kUnit) ? name.substr(0, name.size() - kUnit.size()) : name;
}

}  // namespace

LineKind PcmIioFormat::take(const Fields& fields, Sums& sums) {
  if (std::ranges::count(fields, "Socket") == 1 && std::ranges::count(fields, "Part") == 1) {
    take_header(fields);
    return LineKind::header;
  }
  if (fields.size() < 2 || fields.size() <= socket_field_ || !fields[socket_field_].starts_with("Socket")) {
    return LineKind::text;
  }
  return names_.empty() ? LineKind::text : take_row(fields, sums);
}

void PcmIioFormat::take_header(const Fields& fields) {
  names_.assign(fields.size(), "");
  root_port_field_.reset();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] == "Socket") socket_field_ = i;
    if (fields[i] == "Root Port") root_port_field_ = i;
    if (std::ranges::count(kTexts, fields[i]) == 0) names_[i] = without_unit(fields[i]);
  }
  for (const std::string_view direction : kDirections) {
    if (std::ranges::count(names_, direction) == 1) continue;
    std::string columns;
    for (const std::string_view field : fields) columns += (columns.empty() ? "" : ",") + std::string(field);
    names_.clear();
    fail("pcm-iio: the columns \"{}\" have no \"{}\"", columns.substr(0, 200), direction);
  }
}

LineKind PcmIioFormat::take_row(const Fields& fields, Sums& sums) const {
  if (fields.size() > names_.size()) return LineKind::damaged;
  const bool ours = root_port_.empty() || !root_port_field_ ||
                    (*root_port_field_ < fields.size() && fields[*root_port_field_] == root_port_);
  Sums row;
  std::size_t directions = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::uint64_t value = 0;
    if (names_[i].empty()) continue;
    if (!parse_count(fields[i], value)) return LineKind::damaged;
    const bool of_the_port = std::ranges::count(kDirections, names_[i]) > 0;
    directions += of_the_port;
    // A stack's counts cannot be divided among its root ports.
    if (ours || !of_the_port) row[names_[i]] = value;
  }
  if (directions != kDirections.size()) return LineKind::damaged;
  for (const auto& [name, value] : row) {
    if (!add_count(sums, name, value)) return LineKind::damaged;
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
