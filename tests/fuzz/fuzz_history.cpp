// A history: each line that is read as an event is written as one that reads the same, and all are checked.
#include "systems/history/linearizable.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbscope;
  fuzz::expect_value_or_error([&] {
    std::vector<HistoryEvent> events;
    for (std::string_view rest = fuzz::as_text(data, size); !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      events.push_back(history_event(parse_json_text(line, "history"), "history"));
      const std::string written = dump_json(to_json(events.back()));
      const HistoryEvent again = history_event(parse_json_text(written, "written"), "written");
      if (dump_json(to_json(again)) != written) fuzz::report("an event changed when it was read and written", written);
    }
    for (const HistoryViolation& violation : check_linearizable(events).violations) {
      if (violation.text.find('\n') != std::string::npos) fuzz::report("a violation is not one line", violation.text);
    }
  });
  return 0;
}
