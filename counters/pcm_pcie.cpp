#include "counters/pcm_pcie.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

namespace {

// pcm-pcie is blind to this on every CPU.
constexpr const char* kAlways =
    "which device it was (all devices of all sockets are summed; what they do in the background is subtracted); TLPs "
    "and "
    "bytes; scaled, as groups of events take turns";

std::string blind(const std::string& of_this_generation) {
  return of_this_generation + "; " + kAlways;
}

}  // namespace

// Columns and groups of events: intel/pcm 202302, pcm-pcie.h. Meaning of the opcodes: the tool's own list of events,
// and Intel's uncore performance monitoring guides of the CPUs.
const std::vector<PcmPcieGeneration>& pcm_pcie_generations() {
  static const std::vector<PcmPcieGeneration> generations{
      {"Sandy Bridge-EP, Ivy Bridge-EP",
       {"PCIeRdCur", "PCIeNSRd", "PCIeWiLF", "PCIeItoM", "PCIeNSWr", "PCIeNSWrF"},
       12,
       {{"dma_read_lines", {"PCIeRdCur", "PCIeNSRd"}},
        {"dma_write_full_lines", {"PCIeItoM", "PCIeWiLF", "PCIeNSWrF"}},
        {"dma_write_partial_lines", {"PCIeNSWr"}}},
       blind("MMIO; reads of less than a line; snooped writes of less than a line")},
      {"Haswell, Broadwell, Skylake, Cascade Lake",
       {"PCIRdCur", "RFO", "CRd", "DRd", "ItoM", "PRd", "WiL"},
       14,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"RFO"}},
        {"mmio_doorbells", {"WiL"}}},
       blind("whether an MMIO write is a doorbell or a write-combined line (all stand under mmio_doorbells); RFO, for "
             "partial writes, also counts some of the cores' own; CRd and DRd are left out, as cores cause them")},
      {"Ice Lake",
       {"PCIRdCur", "ItoM", "ItoMCacheNear", "UCRdF", "WiL"},
       2,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"ItoMCacheNear"}},
        {"mmio_doorbells", {"WiL"}}},
       blind(
           "whether an MMIO write is a doorbell or a write-combined line (all that it sees stand under mmio_doorbells; "
           "write-combined lines may be missing)")},
      {"Sapphire Rapids and later",
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
  if (fields[0] == "Skt" && fields.size() > 1) {
    take_header(fields);
    return LineKind::header;
  }
  std::uint64_t socket = 0;
  if (generation_ == nullptr || fields.size() < 2 || !parse_count(fields[0], socket)) return LineKind::text;
  // A row of -e ends in its kind, without a comma before it.
  std::string_view last = fields.back();
  std::string kind;
  if (const std::size_t parenthesis = last.find('('); parenthesis != last.npos) {
    kind = last.substr(parenthesis);
    last = last.substr(0, parenthesis);
    if (kind != "(Total)" && kind != "(Miss)" && kind != "(Hit)") return LineKind::damaged;
  }
  if (fields.size() != numbers_ + 1) return LineKind::damaged;
  std::vector<std::uint64_t> values(numbers_);
  for (std::size_t i = 0; i < numbers_; ++i) {
    if (!parse_count(i + 1 == numbers_ ? last : fields[i + 1], values[i])) return LineKind::damaged;
  }
  if (kind == "(Hit)") return LineKind::row;  // the total less the misses
  for (std::size_t i = 0; i < generation_->columns.size(); ++i) {
    const std::string name = generation_->columns[i] + (kind == "(Miss)" ? " (Miss)" : "");
    if (!add_count(sums, name, values[i])) return LineKind::damaged;
  }
  return LineKind::row;
}

void PcmPcieFormat::take_header(const Fields& fields) {
  const auto fits = [&fields](const PcmPcieGeneration& generation) {
    const std::size_t count = generation.columns.size();
    const bool bandwidths =
        fields.size() == count + 3 && fields[count + 1] == "PCIe Rd (B)" && fields[count + 2] == "PCIe Wr (B)";
    return (fields.size() == count + 1 || bandwidths) &&
           std::equal(generation.columns.begin(), generation.columns.end(), fields.begin() + 1);
  };
  const auto found = std::ranges::find_if(pcm_pcie_generations(), fits);
  if (found == pcm_pcie_generations().end() || (generation_ != nullptr && generation_ != &*found)) {
    std::string columns;
    for (const std::string_view field : fields) columns += (columns.empty() ? "" : ",") + std::string(field);
    fail("pcm-pcie: the columns \"{}\" are those of no CPU that is known here", columns.substr(0, 200));
  }
  generation_ = &*found;
  numbers_ = fields.size() - 1;
}

std::vector<EventRule> PcmPcieFormat::rules() const {
  return generation_ == nullptr ? std::vector<EventRule>{} : generation_->rules;
}

std::string PcmPcieFormat::blind() const {
  return generation_ == nullptr ? "" : generation_->blind;
}

double PcmPcieFormat::counted_s(std::uint32_t asked_ms) const {
  const std::uint32_t groups = generation_ == nullptr ? 1 : generation_->groups;
  return groups * (asked_ms / groups) / 1000.0;
}

}  // namespace verbscope
