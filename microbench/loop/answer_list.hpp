// How a server posts answers: what one pass has made for a send queue is a list, which goes out behind one doorbell or
// a few; and how long the lists were. Data path, but for what becomes of the lengths after the run.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "common/json.hpp"
#include "microbench/loop/lane_queue.hpp"

namespace verbscope {

// The list in the making of one send queue.
struct AnswerList {
  ibv_send_wr* first = nullptr;
  ibv_send_wr* last = nullptr;
  std::uint32_t count = 0;
};

// Lists that were posted, by their length.
struct BatchCounts {
  static constexpr std::uint32_t kLongest = 256;
  std::array<std::uint64_t, kLongest + 1> lists{};

  void count(std::uint32_t length) { ++lists[length]; }
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
  int step = 0;        // lists of all lengths begin at multiples of so many requests of their queue
};
// Reads what BatchCounts::to_json made; where that is no object, all answers are in lists of `usual`.
std::vector<ListShare> list_shares(const Json& batches, int usual);

// Makes `wr`, whose wr_id is send_id of the queue, the last of the list; the queue must have room.
inline void add_answer(LaneQueue& q, AnswerList& list, ibv_send_wr& wr) {
  take_place(q, wr);
  (list.count == 0 ? list.first : list.last->next) = &wr;
  list.last = &wr;
  wr.next = nullptr;
  ++list.count;
}

// Posts the list that was made, if any, behind a doorbell for each `most` of its answers. `batches`: counts the lists;
// may be null. False, with `end` set: a post failed.
inline bool post_answers(LaneQueue& q, AnswerList& list, std::uint32_t most, std::uint32_t index, BatchCounts* batches,
                         RunEnd& end) {
  while (list.count > 0) {
    ibv_send_wr* const first = list.first;
    ibv_send_wr* last = list.last;
    const std::uint32_t length = std::min(list.count, most);
    if (length < list.count) {
      last = first;
      for (std::uint32_t j = 1; j < length; ++j) last = last->next;
    }
    list.first = last->next;
    list.count -= length;
    last->next = nullptr;
    if (batches != nullptr) batches->count(length);
    if (!post_list(q.qp, q.builder, first, index, end)) return false;
  }
  return true;
}

}  // namespace verbscope
