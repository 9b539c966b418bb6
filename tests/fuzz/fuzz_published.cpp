// The table of published figures: parsed, and each row that can run turned into options.
#include "analysis/published.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbscope::fuzz::expect_value_or_error([&] {
    for (const auto& row : verbscope::parse_published(verbscope::fuzz::as_text(data, size), "published")) {
      const verbscope::Json params = row.run.params();
      if (row.reproducible() == params.empty())
        verbscope::fuzz::report("a row runs with options, or says why not", row.id);
      if (row.reproducible() && !(row.value > 0)) verbscope::fuzz::report("a row that runs has a value", row.id);
      if (row.modelled() && !row.single()) verbscope::fuzz::report("the model's figure is of one run", row.id);
      for (const auto& key : row.run.keys) {
        if (!key.accepts(params.at(key.key))) verbscope::fuzz::report("a row does not accept its own options", key.key);
      }
    }
  });
  return 0;
}
