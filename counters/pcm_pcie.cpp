#include "counters/pcm_pcie.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

namespace {

// What pcm-pcie cannot show on any CPU.
constexpr const char* kAlways =
    "which device it was (all devices of all sockets are summed; what they do in the background is subtracted); TLPs "
    "and "
    "bytes; scaled, as groups of events take turns";

std::string blind(const std::string& of_this_generation) {
  return of_this_generation + "; " + kAlways;
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
       blind("MMIO; reads of less than a line; snooped writes of less than a line")},
      {"Haswell, Broadwell, Knights Landing, Skylake, Cascade Lake",
       {"PCIRdCur", "RFO", "CRd", "DRd", "ItoM", "PRd", "WiL"},
       14,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"RFO"}},
        {"mmio_doorbells", {"WiL"}}},
       blind("whether an MMIO write is a doorbell or a write-combined line (all stand under mmio_doorbells); RFO, for "
             "partial writes, also counts some of the cores' own; CRd and DRd are left out, as cores cause them")},
      {"Ice Lake, Snow Ridge",
       {"PCIRdCur", "ItoM", "ItoMCacheNear", "UCRdF", "WiL"},
       2,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"ItoMCacheNear"}},
        {"mmio_doorbells", {"WiL"}}},
       blind(
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
       blind("whether streaming stores (WCiL, WCiLF) went to a device or to memory")}};
  return generations;
}

LineKind PcmPcieFormat::take(const Fields& fields, Sums& sums) {
  if (fields.size() > 1 && std::ranges::count(fields, "Skt") == 1) {
    take_header(fields);
    return LineKind::header;
  }
  std::uint64_t socket = 0;
  if (generation_ == nullptr || fields.size() < 2 || fields.size() <= socket_field_ ||
      !parse_count(fields[socket_field_], socket)) {
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
    if (!parse_count(i + 1 == names_.size() ? last : fields[i], row[names_[i]])) return LineKind::damaged;
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
    std::string columns;
    for (const std::string_view field : fields) columns += (columns.empty() ? "" : ",") + std::string(field);
    fail("pcm-pcie: the columns \"{}\" are those of no CPU that is known here", columns.substr(0, 200));
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

}  // namespace verbscope
