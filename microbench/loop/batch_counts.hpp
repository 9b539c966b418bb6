// How many requests a server posts behind each doorbell.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

// Lists that were posted, by their length.
struct BatchCounts {
  static constexpr std::uint32_t kLongest = 256;
  std::array<std::uint64_t, kLongest + 1> lists{};

  void count(std::uint32_t length, std::uint64_t times = 1) { lists[length] += times; }
  void merge(const BatchCounts& other) {
    for (std::size_t n = 0; n < lists.size(); ++n) lists[n] += other.lists[n];
  }
  // {"mean", "p50", "p99", "max", "lists": [[length, how many lists], ...]} of the lists' lengths; null: there was
  // none.
  Json to_json() const;
};

// The part of all answers that went out in lists of one length.
struct ListShare {
  int length = 1;
  double answers = 1;  // share of all answers
  int step = 0;        // lists begin at multiples of this many requests of their queue
};
// Parses the result of BatchCounts::to_json(). Null: all answers are in lists of `usual`.
std::vector<ListShare> list_shares(const Json& batches, int usual);

}  // namespace verbscope
