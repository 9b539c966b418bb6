// The places where a fabric does not do what the specification or the manual page says. A test that meets one asks this
// table and expects the fabric's own behaviour; docs/verbs-conformance.md has a section for each entry, with the
// specification's word on it.
#pragma once

#include <span>
#include <string_view>

namespace verbscope::conformance {

struct Deviation {
  std::string_view key;     // names the section of the document
  std::string_view fabric;  // "sim", or how the names of the devices of a driver begin: "rxe"
};

std::span<const Deviation> deviations();

// Whether the fabric of this run deviates so. A key that no entry has is a failure of the test.
bool deviates(std::string_view key);

}  // namespace verbscope::conformance
