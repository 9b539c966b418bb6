// What a look-up in the B-trees of OrderedMap costs a simulated machine, and the closed form of their shape.
//
// A level is in the last-level cache if it fits there together with all levels above it: the nodes near the root are
// used most often. Each node of the other levels costs one access to memory, because the lines of a node are fetched
// together (Mao, Kohler and Morris, "Cache Craftiness for Fast Multicore Key-Value Storage", EuroSys 2012, section 4.2,
// which prefetches them for that reason).
#pragma once

#include <cstdint>

#include "common/units.hpp"

namespace verbscope::ordered {

// absl::btree_map with keys and values of 8 bytes: nodes of 256 bytes, and inner ones with 16 children besides.
inline constexpr std::uint32_t kNodeKeys = 15;
inline constexpr Bytes kLeafBytes{256}, kInnerBytes{384};

// Computing time with cached nodes. Assumed: measured on a current Xeon (bench_ordered_map, 1,000 keys), times 1.7 as
// for an empty poll in the profiles.
struct TreeCosts {
  Nanos enter{10};  // assumed: a locked store to a line of its own, as `atomic_add_ns` of the profiles
  Nanos level{20};  // 12 ns: the search in a node, with mispredicted branches
  Nanos key{4};     // 2.3 ns: each key of a scan
  Nanos reader{4};  // assumed: a PUT reads a line of each thread, 40 ns each and ten at a time
};
inline constexpr TreeCosts kTreeCosts;

// Trees of the same shape, of random keys.
struct TreeShape {
  std::uint32_t trees = 1;
  std::uint32_t levels = 0;
  std::uint64_t leaves = 0;
  std::uint64_t inner_nodes = 0;

  // Children of an inner node, on average.
  double children() const {
    return inner_nodes == 0 ? 0 : static_cast<double>(leaves + inner_nodes - trees) / static_cast<double>(inner_nodes);
  }
  Bytes bytes() const { return Bytes(leaves * kLeafBytes.value + inner_nodes * kInnerBytes.value); }
  // Levels that are not in a last-level cache of this size.
  std::uint32_t dram_levels(Bytes cache) const;
};

// The shape of trees with random keys, from the number of keys and the room of a node only. If full nodes give keys to
// their neighbours before they split, they are filled to 2 ln(3/2) = 81 % (Küspert, "Storage Utilization in B*-Trees
// with a Generalized Overflow Technique", Acta Informatica 19, 1983).
TreeShape modelled_shape(std::uint64_t keys, std::uint32_t trees);

// Time of a GET and of a scan of `length` keys on a simulated machine, by the closed form.
Picos modelled_get(const TreeShape& shape, Bytes cache, Picos dram);
Picos modelled_scan(const TreeShape& shape, Bytes cache, Picos dram, std::uint64_t length);

}  // namespace verbscope::ordered
