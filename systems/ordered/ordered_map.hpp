// An ordered map of 8-byte keys and values that many threads use. The key space is cut into partitions of equal width,
// each a B-tree of Abseil: keys are expected to be evenly distributed, such as random ones or hashes.
//
// Readers never block readers, and write to no memory that other readers write to. A reader says in a cache line of its
// own which partition it reads, and then looks whether a writer has the partition. A writer takes the partition, and
// then waits until no reader says that it is there. Each of the four accesses is sequentially consistent, so at least
// one of the two sees the other.
//
// A GET returns the value of the last PUT before it, or of one at the same time. A scan goes through the partitions in
// order, and sees each of them as it is at one moment: between two PUTs. The moments of two partitions differ, and a
// scan of several partitions may miss a PUT to the first and see a later PUT to the second.
//
// On a simulated machine a look-up declares its time (TreeCosts), and waits for memory at each level that is not in the
// last-level cache (TreeShape::dram_levels). Data path.
#pragma once

#include <absl/container/btree_map.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "machine/node.hpp"
#include "systems/ordered/tree_model.hpp"

namespace verbscope::ordered {

class OrderedMap {
 public:
  // A power of two. A writer holds up the readers of one partition, and so of one key in this number.
  static constexpr std::uint32_t kPartitions = 64;

  // Threads are named by their numbers below `threads`.
  explicit OrderedMap(std::uint32_t threads) : readers_(threads), partitions_(kPartitions) {}

  // Before the threads use the map: stores a key. end_load() then says what simulated look-ups cost, with a last-level
  // cache of this size.
  void load(std::uint64_t key, std::uint64_t value) { partition_of(key).tree.insert_or_assign(key, value); }
  void end_load(Bytes cache);
  // Of the trees as they were loaded.
  const TreeShape& shape() const { return shape_; }

  // Allocates nothing.
  template <Node N>
  std::optional<std::uint64_t> get(N& node, std::uint32_t thread, std::uint64_t key) {
    Partition& partition = partition_of(key);
    const Reading reading(*this, node, thread, partition);
    descend(node);
    const auto found = partition.tree.find(key);
    if (found == partition.tree.end()) return std::nullopt;
    return found->second;
  }

  // Of the first `length` keys that are not below `first`: their number, their sum and that of their values.
  struct Sum {
    std::uint64_t count = 0, keys = 0, values = 0;
  };
  template <Node N>
  Sum scan(N& node, std::uint32_t thread, std::uint64_t first, std::uint64_t length) {
    Sum sum;
    for (std::size_t at = number_of(first); at < kPartitions && sum.count < length; ++at) {
      const Reading reading(*this, node, thread, partitions_[at]);
      scan_partition(node, partitions_[at].tree, first, length, sum);
      pass_time(node);
    }
    return sum;
  }

  // Returns true if the key is new.
  template <Node N>
  bool put(N& node, std::uint32_t thread, std::uint64_t key, std::uint64_t value) {
    Partition& partition = partition_of(key);
    while (partition.writing.exchange(1) != 0) wait(node);
    const std::uint32_t number = static_cast<std::uint32_t>(number_of(key)) + 1;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      while (i != thread && readers_[i].reads.load() == number) wait(node);
    }
    node.compute(kTreeCosts.reader * static_cast<std::int64_t>(readers_.size()));
    descend(node);
    const bool fresh = partition.tree.insert_or_assign(key, value).second;
    pass_time(node);
    partition.writing.store(0, std::memory_order_release);
    return fresh;
  }

 private:
  // Abseil counts the nodes of a tree, but for its own classes only.
  struct Tree : absl::btree_map<std::uint64_t, std::uint64_t> {
    std::uint32_t levels() const { return empty() ? 0 : static_cast<std::uint32_t>(tree_.height()); }
    std::size_t leaves() const { return tree_.leaf_nodes(); }
    std::size_t inner_nodes() const { return tree_.internal_nodes(); }
  };
  struct alignas(64) Partition {
    std::atomic<std::uint32_t> writing{0};
    Tree tree;
  };
  struct alignas(64) Reader {
    std::atomic<std::uint32_t> reads{0};  // number of the partition, from 1 on; 0: none
  };

  // A thread reads a partition until the end of a block.
  class Reading {
   public:
    template <Node N>
    Reading(OrderedMap& map, N& node, std::uint32_t thread, Partition& partition) : reader_(map.readers_[thread]) {
      const auto number = static_cast<std::uint32_t>(&partition - map.partitions_.data()) + 1;
      node.compute(kTreeCosts.enter);
      while (true) {
        reader_.reads.store(number);
        if (partition.writing.load() == 0) [[likely]]
          return;
        reader_.reads.store(0, std::memory_order_release);
        while (partition.writing.load() != 0) wait(node);
      }
    }
    ~Reading() { reader_.reads.store(0, std::memory_order_release); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    Reader& reader_;
  };

  static std::size_t number_of(std::uint64_t key) {
    constexpr int kBits = std::countr_zero(kPartitions);
    return key >> (64 - kBits);
  }
  Partition& partition_of(std::uint64_t key) { return partitions_[number_of(key)]; }

  // On a simulated machine: the declared time goes by, and other threads run.
  template <Node N>
  static void pass_time(N& node) {
    if constexpr (!std::is_same_v<N, HostNode>) node.poll_memory();
  }
  // Another thread is in the way.
  template <Node N>
  static void wait(N& node) {
    pass_time(node);
    cpu_relax();
  }

  // What the way from the root to a leaf takes on a simulated machine. Without a prefetch the address of a load does
  // not matter.
  template <Node N>
  void descend(N& node) const {
    if constexpr (std::is_same_v<N, HostNode>) return;
    node.compute(kTreeCosts.level * static_cast<std::int64_t>(shape_.levels));
    for (std::uint32_t i = 0; i < dram_levels_; ++i) node.load(this);
  }

  template <Node N>
  void scan_partition(N& node, const Tree& tree, std::uint64_t first, std::uint64_t length, Sum& sum) const {
    const std::uint64_t before = sum.count;
    std::uint64_t jumps = 0;
    const std::pair<const std::uint64_t, std::uint64_t>* last = nullptr;
    for (auto at = tree.lower_bound(first); at != tree.end() && sum.count < length; ++at) {
      if constexpr (!std::is_same_v<N, HostNode>) {
        jumps += last != nullptr && &*at != last + 1 ? 1 : 0;
        last = &*at;
      }
      sum.keys += at->first;
      sum.values += at->second;
      ++sum.count;
    }
    if constexpr (std::is_same_v<N, HostNode>) return;
    descend(node);
    node.compute(kTreeCosts.key * static_cast<std::int64_t>(sum.count - before));
    // Between two leaves there is a key in a node above them, which the way down has fetched.
    for (std::uint64_t leaf = 0; dram_levels_ > 0 && leaf < jumps / 2; ++leaf) node.load(&tree);
  }

  std::vector<Reader> readers_;  // by thread
  std::vector<Partition> partitions_;
  TreeShape shape_;
  std::uint32_t dram_levels_ = 0;
};

}  // namespace verbscope::ordered
