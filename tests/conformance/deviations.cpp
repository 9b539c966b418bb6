#include "tests/conformance/deviations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/conformance/fabric.hpp"

namespace verbscope::conformance {
namespace {

constexpr std::array kDeviations = {
    Deviation{"bad-receive-buffer-status", "rxe"},
    Deviation{"bad-send-key-status", "rxe"},
    Deviation{"bad-wr-of-a-wrong-state", "rxe"},
    Deviation{"bind-without-a-region", "rxe"},
    Deviation{"builder-inline-needs-the-flag", "rxe"},
    Deviation{"builder-list-lengths", "rxe"},
    Deviation{"controlled-qkey", "rxe"},
    Deviation{"cq-overrun-loses-completions", "rxe"},
    Deviation{"datagram-over-the-mtu", "sim"},
    Deviation{"end-of-an-exhausted-poll", "rxe"},
    Deviation{"invalidation-flag", "rxe"},
    Deviation{"long-message-status", "rxe"},
    Deviation{"misaligned-atomic-refused-by-the-post", "rxe"},
    Deviation{"no-events-of-failed-qps", "rxe"},
    Deviation{"no-region-without-bytes", "rxe"},
    Deviation{"path-mtu-zero", "rxe"},
    Deviation{"pkey-index-unchecked", "rxe"},
    Deviation{"poll-attributes-unchecked", "rxe"},
    Deviation{"ranges-unchecked", "rxe"},
    Deviation{"receive-in-error-waits", "rxe"},
    Deviation{"reset-to-error", "rxe"},
    Deviation{"unsupported-operation-found-late", "rxe"},
    Deviation{"window-range-unchecked", "rxe"},
};

}  // namespace

std::span<const Deviation> deviations() {
  return kDeviations;
}

bool deviates(std::string_view key) {
  if (std::ranges::find(kDeviations, key, &Deviation::key) == kDeviations.end()) {
    ADD_FAILURE() << "no deviation is called " << key;
  }
  const std::string here = fabric().device();
  return std::ranges::any_of(
      kDeviations, [&](const Deviation& entry) { return entry.key == key && here.starts_with(entry.fabric); });
}

TEST(Deviations, EachHasItsSectionInTheDocument) {
  if (!fabric().simulated()) GTEST_SKIP() << "said once, where the sources are at hand";
  std::ifstream file(std::filesystem::path(VERBSCOPE_SOURCE_DIR) / "docs/verbs-conformance.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const Deviation& entry : deviations()) {
    EXPECT_NE(text.str().find("### " + std::string(entry.key) + "\n"), std::string::npos) << entry.key;
  }
}

}  // namespace verbscope::conformance
