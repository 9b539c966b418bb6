// The output of Intel PCM's tools: the first byte chooses the tool. However the text is cut into pieces, the blocks are
// the same, and every whole block has as many rows as the others.
#include "counters/tool_formats.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace verbscope;

template <class Format>
std::vector<ToolInterval> blocks(std::string_view text, std::size_t piece) {
  Format format;
  ToolLog log(format);
  for (std::size_t at = 0; at < text.size(); at += piece) log.feed(text.substr(at, piece), Picos(1));
  const auto whole = log.whole_intervals();
  if (whole.size() > log.blocks() || log.damaged() > log.blocks()) fuzz::report("more blocks than there are", "");
  for (const ToolInterval& interval : whole) {
    if (interval.rows != whole.front().rows || interval.rows == 0) fuzz::report("whole blocks differ in rows", "");
  }
  if (!whole.empty() && (format.rules().empty() || format.blind().empty()))
    fuzz::report("blocks without a meaning", "");
  return whole;
}

template <class Format>
void check(std::string_view text) {
  fuzz::expect_value_or_error([&] {
    const auto at_once = blocks<Format>(text, text.size() + 1);
    const auto in_pieces = blocks<Format>(text, 7);
    const bool same = std::equal(at_once.begin(), at_once.end(), in_pieces.begin(), in_pieces.end(),
                                 [](const auto& a, const auto& b) { return a.sums == b.sums && a.rows == b.rows; });
    if (!same) fuzz::report("pieces change the result", "");
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::as_text(data, size).substr(1);
  if (data[0] == 'i') {
    check<PcmIioFormat>(text);
  } else {
    check<PcmPcieFormat>(text);
  }
  return 0;
}
