#include "systems/ordered/tree_model.hpp"

#include <cmath>

namespace verbscope::ordered {

namespace {

const double kFill = 2 * std::log(1.5);

}  // namespace

// The nodes of a level are those of the level below it, divided by the children of a node.
std::uint32_t TreeShape::dram_levels(Bytes cache) const {
  double above = static_cast<double>(inner_nodes * kInnerBytes.value);  // bytes of the levels above the last one
  double all = above + static_cast<double>(leaves * kLeafBytes.value);
  std::uint32_t out = 0;
  while (out < levels && all > static_cast<double>(cache.value)) {
    ++out;
    all = above;
    above = children() > 0 ? above / children() : 0;
  }
  return out;
}

// Between two leaves there is one key in a node above them, and so on up to the root.
TreeShape modelled_shape(std::uint64_t keys, std::uint32_t trees) {
  const double children = kFill * kNodeKeys + 1;
  TreeShape shape{.trees = trees};
  if (keys == 0) return shape;
  double nodes = static_cast<double>(keys) / trees / children;
  shape.levels = 1;
  shape.leaves = static_cast<std::uint64_t>(std::ceil(nodes)) * trees;
  while (nodes > 1) {
    nodes /= children;
    shape.inner_nodes += static_cast<std::uint64_t>(std::ceil(nodes)) * trees;
    ++shape.levels;
  }
  return shape;
}

Picos modelled_get(const TreeShape& shape, Bytes cache, Picos dram) {
  return kTreeCosts.enter + kTreeCosts.level * shape.levels + dram * shape.dram_levels(cache);
}

Picos modelled_scan(const TreeShape& shape, Bytes cache, Picos dram, std::uint64_t length) {
  const double leaves = static_cast<double>(length) / (kFill * kNodeKeys + 1);
  const Picos more(static_cast<std::int64_t>(leaves * static_cast<double>(dram.count())));
  return modelled_get(shape, cache, dram) + kTreeCosts.key * static_cast<std::int64_t>(length) +
         (shape.dram_levels(cache) > 0 ? more : Picos(0));
}

}  // namespace verbscope::ordered
