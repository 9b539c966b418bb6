// The frame of every fuzz target: whatever the bytes are, a parser ends with a value or with an Error of one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/error.hpp"

namespace verbscope::fuzz {

[[noreturn]] inline void report(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}

// Runs `parse`. Any exception but Error ends the process, as does an Error whose text is not one line.
template <class Parse>
void expect_value_or_error(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.empty() || text.find_first_of("\r\n") != std::string::npos) report("an Error is not one line", text);
  }
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace verbscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
