// The three variants of looking up many keys in a structure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "common/error.hpp"
#include "lookups/interleave.hpp"

namespace verbscope::lookups {

enum class Variant {
  baseline,     // one key after the other
  group,        // stage by stage over a batch: prefetch for all, then read for all
  interleaved,  // lanes that switch at each access
};

inline constexpr std::array kVariants = {Variant::baseline, Variant::group, Variant::interleaved};

constexpr const char* to_string(Variant variant) {
  return variant == Variant::baseline ? "baseline" : variant == Variant::group ? "group" : "interleaved";
}

// Looks up `keys` in a structure, `batch` (1 to kMaxBatch) at a time if the variant uses batches. results[i] belongs
// to keys[i] in every variant. A structure has the types Key and Result and, for any Node,
//   Result find(node, key): the baseline;
//   void find_group(node, keys, results): at most kMaxBatch keys, stage by stage;
//   static Lane find_lane(FrameSlot&, node, structure, Batch<Key, Result>&): takes keys until none is left.
// Each calls node.prefetch and node.load for the accesses that are expected to miss the cache, and for no others.
template <Node N, class Structure>
void look_up(N& node, const Structure& structure, Variant variant, std::size_t batch,
             std::span<const typename Structure::Key> keys, typename Structure::Result* results) {
  if (variant == Variant::baseline) {
    for (std::size_t i = 0; i < keys.size(); ++i) results[i] = structure.find(node, keys[i]);
  } else if (variant == Variant::group) {
    for (std::size_t i = 0; i < keys.size(); i += batch) {
      structure.find_group(node, keys.subspan(i, std::min(batch, keys.size() - i)), results + i);
    }
  } else {
    Batch<typename Structure::Key, typename Structure::Result> all{keys, results};
    interleave<kMaxBatch>(std::min(batch, keys.size()),
                          [&](FrameSlot& slot) { return Structure::find_lane(slot, node, structure, all); });
  }
}

}  // namespace verbscope::lookups
