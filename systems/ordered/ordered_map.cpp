#include "systems/ordered/ordered_map.hpp"

#include <algorithm>

namespace verbscope::ordered {

void OrderedMap::end_load(Bytes cache) {
  shape_ = {.trees = kPartitions};
  for (const Partition& partition : partitions_) {
    shape_.levels = std::max(shape_.levels, partition.tree.levels());
    shape_.leaves += partition.tree.leaves();
    shape_.inner_nodes += partition.tree.inner_nodes();
  }
  dram_levels_ = shape_.dram_levels(cache);
}

}  // namespace verbscope::ordered
