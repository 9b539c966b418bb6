// The harness and `verbscope hold` read each other's words: one line as the request, and everything as answers. However
// the answers are cut into pieces they mean the same, within their bounds, and what is shown of them is printable.
#include <algorithm>

#include "harness/cluster/hold.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace verbscope;

void check_request(std::string_view line) {
  fuzz::expect_value_or_error([&] {
    const HoldRequest request = parse_hold_request(line);
    const std::string text = to_line(request);
    if (text.find('\n') != text.size() - 1) fuzz::report("a request is not one line", text);
    if (to_line(parse_hold_request(text)) != text) fuzz::report("a request changed when it was written and read", text);
  });
}

HoldReader read_answers(std::string_view text, std::size_t piece) {
  HoldReader reader;
  for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  return reader;
}

// All that was understood, as one text.
std::string understood(const HoldReader& reader) {
  return dump_json(Json{{"out", reader.output()},
                        {"record", reader.record().value_or("none")},
                        {"end", reader.end() ? to_json(*reader.end()) : Json()}});
}

void check_printable(const std::string& line) {
  if (std::ranges::any_of(line, [](char c) { return c < 0x20 || c > 0x7e; })) fuzz::report("not printable", line);
}

void check_answers(std::string_view text) {
  const HoldReader reader = read_answers(text, text.size() + 1);
  if (reader.output().size() > kHeldOutput) fuzz::report("more output than may be", "");
  if (reader.end()) {
    check_printable(reader.end()->text);
    for (const std::string& line : reader.end()->tail) check_printable(line);
  }
  if (understood(reader) != understood(read_answers(text, 7))) fuzz::report("pieces change the answers", "");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  check_request(text);
  check_answers(text);
  return 0;
}
