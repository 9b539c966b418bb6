#include "counters/tool_formats.hpp"

#include <algorithm>
#include <array>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {

namespace {

// The columns of a header, for messages.
std::string columns_text(const Fields& fields) {
  return fmt::format("{}", fmt::join(fields, ",")).substr(0, 200);
}

// The traffic that pcm-pcie cannot show on any CPU.
constexpr const char* kPcmPcieBlind =
    "which device it was (all devices of all sockets are summed; what they do in the background is subtracted); TLPs "
    "and bytes; scaled, as groups of events take turns";

std::string pcm_pcie_blind(const std::string& of_this_generation) {
  return of_this_generation + "; " + kPcmPcieBlind;
}

// Releases up to 202003 use the Sandy Bridge name for reads on Haswell and later.
bool is_column(std::string_view field, std::string_view column) {
  return field == column || (column == "PCIRdCur" && field == "PCIeRdCur");
}

}  // namespace

// Columns and groups of events: intel/pcm 202003 to 202509, pcm-pcie.h. Opcodes: the tool's list of events, and Intel's
// uncore performance monitoring guides.
const std::vector<PcmPcieGeneration>& pcm_pcie_generations() {
  static const std::vector<PcmPcieGeneration> generations{
      {"Sandy Bridge-EP, Ivy Bridge-EP",
       {"PCIeRdCur", "PCIeNSRd", "PCIeWiLF", "PCIeItoM", "PCIeNSWr", "PCIeNSWrF"},
       12,
       {{"dma_read_lines", {"PCIeRdCur", "PCIeNSRd"}},
        {"dma_write_full_lines", {"PCIeItoM", "PCIeWiLF", "PCIeNSWrF"}},
        {"dma_write_partial_lines", {"PCIeNSWr"}}},
       pcm_pcie_blind("MMIO; reads of less than a line; snooped writes of less than a line")},
      {"Haswell, Broadwell, Knights Landing, Skylake, Cascade Lake",
       {"PCIRdCur", "RFO", "CRd", "DRd", "ItoM", "PRd", "WiL"},
       14,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"RFO"}},
        {"mmio_doorbells", {"WiL"}}},
       pcm_pcie_blind(
           "whether an MMIO write is a doorbell or a write-combined line (all stand under mmio_doorbells); RFO, for "
           "partial writes, also counts some of the cores' own; CRd and DRd are left out, as cores cause them")},
      {"Ice Lake, Snow Ridge",
       {"PCIRdCur", "ItoM", "ItoMCacheNear", "UCRdF", "WiL"},
       2,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"ItoMCacheNear"}},
        {"mmio_doorbells", {"WiL"}}},
       pcm_pcie_blind(
           "whether an MMIO write is a doorbell or a write-combined line (all that it sees stand under mmio_doorbells; "
           "write-combined lines may be missing)")},
      {"Sapphire Rapids, Emerald Rapids, Granite Rapids, Sierra Forest, Grand Ridge",
       {"PCIRdCur", "ItoM", "ItoMCacheNear", "UCRdF", "WiL", "WCiL", "WCiLF"},
       3,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"ItoMCacheNear"}},
        {"mmio_wc_lines", {"WCiLF"}},
        {"mmio_doorbells", {"WiL", "WCiL"}}},
       pcm_pcie_blind("whether streaming stores (WCiL, WCiLF) went to a device or to memory")}};
  return generations;
}

LineKind PcmPcieFormat::take(const Fields& fields, Sums& sums) {
  if (fields.size() > 1 && std::ranges::count(fields, "Skt") == 1) {
    take_header(fields);
    return LineKind::header;
  }
  if (generation_ == nullptr || fields.size() < 2 || fields.size() <= socket_field_ ||
      !number_from<std::uint64_t>(fields[socket_field_])) {
    return LineKind::text;
  }
  // A row of -e ends with its kind, without a comma before it.
  std::string_view last = fields.back();
  std::string kind;
  if (const std::size_t parenthesis = last.find('('); parenthesis != last.npos) {
    kind = last.substr(parenthesis);
    last = last.substr(0, parenthesis);
    if (kind != "(Total)" && kind != "(Miss)" && kind != "(Hit)") return LineKind::damaged;
  }
  if (fields.size() != names_.size()) return LineKind::damaged;
  Sums row;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty()) continue;
    const auto value = number_from<std::uint64_t>(i + 1 == names_.size() ? last : fields[i]);
    if (!value) return LineKind::damaged;
    row[names_[i]] = *value;
  }
  if (kind == "(Hit)") return LineKind::row;  // the total minus the misses
  for (const auto& [name, value] : row) {
    if (!add_count(sums, name + (kind == "(Miss)" ? " (Miss)" : ""), value)) return LineKind::damaged;
  }
  return LineKind::row;
}

void PcmPcieFormat::take_header(const Fields& fields) {
  const PcmPcieGeneration* best = nullptr;
  for (const PcmPcieGeneration& generation : pcm_pcie_generations()) {
    const bool fits = std::ranges::all_of(generation.columns, [&](const std::string& column) {
      return std::ranges::count_if(fields, [&](std::string_view field) { return is_column(field, column); }) == 1;
    });
    if (fits && (best == nullptr || generation.columns.size() > best->columns.size())) best = &generation;
  }
  if (best == nullptr || (generation_ != nullptr && generation_ != best)) {
    fail("pcm-pcie: the columns \"{}\" belong to no known CPU generation, or not to that of the first header",
         columns_text(fields));
  }
  generation_ = best;
  socket_field_ = static_cast<std::size_t>(std::ranges::find(fields, "Skt") - fields.begin());
  names_.assign(fields.size(), "");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto column =
        std::ranges::find_if(best->columns, [&](const auto& name) { return is_column(fields[i], name); });
    if (column != best->columns.end()) names_[i] = *column;
  }
}

std::vector<EventRule> PcmPcieFormat::rules() const {
  return generation_ == nullptr ? std::vector<EventRule>{} : generation_->rules;
}

std::string PcmPcieFormat::blind() const {
  return generation_ == nullptr ? "" : generation_->blind;
}

double PcmPcieFormat::counted_s(std::uint32_t asked_ms, bool sleeps_twice) const {
  const std::uint32_t groups = generation_ == nullptr ? 1 : generation_->groups;
  return groups * ((asked_ms + (sleeps_twice ? groups - 1 : 0)) / groups) / 1000.0;
}

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
    names_.clear();
    fail("pcm-iio: the column \"{1}\" is missing in the header \"{0}\"", columns_text(fields), direction);
  }
}

LineKind PcmIioFormat::take_row(const Fields& fields, Sums& sums) const {
  if (fields.size() > names_.size()) return LineKind::damaged;
  const bool ours = root_port_.empty() || !root_port_field_ ||
                    (*root_port_field_ < fields.size() && fields[*root_port_field_] == root_port_);
  Sums row;
  std::size_t directions = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (names_[i].empty()) continue;
    const auto value = number_from<std::uint64_t>(fields[i]);
    if (!value) return LineKind::damaged;
    const bool of_the_port = std::ranges::count(kDirections, names_[i]) > 0;
    directions += of_the_port;
    // A stack's counts cannot be divided among its root ports.
    if (ours || !of_the_port) row[names_[i]] = *value;
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

namespace {

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// For "|| name || value ||| name || value [unit] ||": removes and returns the cell before the next bars, and removes
// the bars.
std::string_view take_cell(std::string_view& line) {
  const std::size_t bars = std::min(line.size(), line.find('|'));
  const std::string_view cell = without_blanks(line.substr(0, bars));
  line.remove_prefix(std::min(line.size(), line.find_first_not_of('|', bars)));
  return cell;
}

}  // namespace

LineKind NeoHostFormat::take(const Fields& fields, Sums& sums) {
  // Names contain no commas, so a line with a comma is no row.
  if (fields.size() != 1 || !fields[0].starts_with("||")) return LineKind::text;
  std::string_view line = fields[0].substr(2);
  const std::string name(take_cell(line));
  if (name == "Counter Name") {
    header_seen_ = true;
    return LineKind::header;
  }
  if (!header_seen_ || name.empty() || name.starts_with('-') || name.starts_with('=')) return LineKind::text;
  const std::string_view value = take_cell(line);
  const std::string analysis(take_cell(line));
  if (const std::string_view text = take_cell(line); !text.empty()) {
    const std::size_t bracket = text.find('[');
    const std::string_view number = without_blanks(text.substr(0, bracket));
    const auto parsed = number_from<double>(number);
    if (parsed && bracket != text.npos) {
      analysis_[analysis + " " + std::string(text.substr(bracket))] = *parsed;
    }
  }
  if (const auto count = number_from<std::uint64_t>(value)) {
    return add_count(sums, name, *count) ? LineKind::row : LineKind::damaged;
  }
  // The chip's clock is a number with decimals, not a count.
  const auto gauge = number_from<double>(value);
  if (!gauge) return LineKind::damaged;
  analysis_[name] = *gauge;
  return LineKind::row;
}

std::string NeoHostFormat::blind() const {
  return "which program of the device it was; PCIe transactions; the interval of the numbers is undocumented; they are "
         "taken as events per second";
}

}  // namespace verbscope
