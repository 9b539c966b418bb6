// Every variant at every batch size must return the expected results.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "lookups/interleave.hpp"
#include "machine/node.hpp"

namespace verbscope::test {

template <class Structure>
std::vector<typename Structure::Result> look_up_all(const Structure& structure, lookups::Variant variant,
                                                    std::size_t batch, std::span<const typename Structure::Key> keys) {
  HostNode node;
  std::vector<typename Structure::Result> results(keys.size());
  lookups::look_up(node, structure, variant, batch, keys, results.data());
  return results;
}

template <class Structure>
void expect_all_variants_return(const Structure& structure, std::span<const typename Structure::Key> keys,
                                const std::vector<typename Structure::Result>& expected) {
  for (const lookups::Variant variant : lookups::kVariants) {
    for (std::size_t batch = 1; batch <= lookups::kMaxBatch; ++batch) {
      EXPECT_EQ(look_up_all(structure, variant, batch, keys), expected) << to_string(variant) << ", batch " << batch;
    }
  }
}

}  // namespace verbscope::test
