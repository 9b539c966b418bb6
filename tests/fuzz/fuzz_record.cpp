// A line of a results file: what is read as a record is written as a record that reads the same.
#include "common/record.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbscope::fuzz::expect_value_or_error([&] {
    const auto json = verbscope::parse_json_text(verbscope::fuzz::as_text(data, size), "record");
    const verbscope::Record record = verbscope::record_from_json(json, "record");
    const std::string written = verbscope::dump_json(verbscope::to_json(record));
    const auto again = verbscope::parse_json_text(written, "written");
    if (verbscope::dump_json(verbscope::to_json(verbscope::record_from_json(again, "written"))) != written) {
      verbscope::fuzz::report("a record changed when it was read and written", written);
    }
  });
  return 0;
}
