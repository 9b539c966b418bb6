// The data path of a client of a store whose GETs are one-sided: its GETs are READs over RC, its PUTs messages over UC
// (puts.hpp), `window` requests of either kind together.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/request_loop.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/one_sided/access.hpp"
#include "systems/one_sided/puts.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

// The queues of a client's thread.
inline constexpr std::uint32_t kReadQueue = 0;
inline constexpr std::uint32_t kPutQueue = 1;

// A GET, outstanding or free; its READ is prebuilt but for place and size.
template <class Access>
struct OneSidedGet {
  StoreRequest request;
  typename Access::Get get;
  RegionPiece piece;
  std::byte* got = nullptr;  // destination of the READ
  ibv_send_wr read{};
  ibv_sge segment{};
  std::uint32_t index = 0;
};

// An outstanding PUT, in the slot of its number.
struct OneSidedPut {
  StoreRequest request;
  std::byte* end = nullptr;  // of the message
  ibv_send_wr message{};
  ibv_sge segment{};
};

template <class Access>
struct OneSidedClientState : ClientLoopState {
  std::array<SendQueue, 2> queues;
  std::span<OneSidedGet<Access>> gets;
  std::span<OneSidedGet<Access>*> free_gets;  // a stack
  std::uint32_t free = 0;                     // of these
  std::span<OneSidedPut> puts;
  const Access* access = nullptr;
  ClientOracle* oracle = nullptr;
  PutLayout layout;
  std::uint64_t base = 0;       // the server's address of the store
  std::byte* answer = nullptr;  // answers by WRITE: the number of the last PUT that was executed
  RecvLane recvs;               // answers by SEND
  Picos retry_after{0};
  std::array<GetCounts, 2> counts;  // outside of the measured interval, and within it

  bool has_next = false;  // a request was drawn that had no room yet
  StoreRequest next;
  std::uint64_t put = 0;       // number of the last PUT sent
  std::uint64_t answered = 0;  // number of the last PUT answered
  Picos waiting_since{0};      // of the oldest that is not answered: when it was sent last, or became the oldest
  std::uint64_t attempts = 0;

  std::uint64_t under_way() const { return gets.size() - free + (put - answered); }

  // As client_loop() calls them.
  template <Node N>
  bool ask(N& node, RunEnd& end) {
    return send_requests(*this, node.now(), end);
  }
  bool drained() const { return under_way() == 0; }
  template <Node N>
  int take(N& node, OperationMeter& meter, RunEnd& end);
  template <Node N>
  bool wait(N& node, IdleWait& idle, RunEnd& end);
};

template <class Access>
inline bool read_piece(OneSidedClientState<Access>& s, OneSidedGet<Access>& get, RunEnd& end) {
  get.segment.length = get.piece.bytes;
  get.read.wr.rdma.remote_addr = s.base + get.piece.offset;
  return post_one(s.queues[kReadQueue], get.read, end);
}

// Sends PUT `number` as another try.
template <class Access>
inline bool send_put(OneSidedClientState<Access>& s, std::uint64_t number, RunEnd& end) {
  OneSidedPut& put = s.puts[(number - 1) % s.puts.size()];
  store_word(put.end - kPutTagBytes, put_tag(number, s.attempts));
  return post_one(s.queues[kPutQueue], put.message, end);
}

// Sends requests until as many are outstanding as may be.
template <class Access>
inline bool send_requests(OneSidedClientState<Access>& s, Picos now, RunEnd& end) {
  while (s.under_way() < s.gets.size()) {
    if (!s.has_next) s.next = s.oracle->draw();
    s.has_next = s.queues[s.next.put ? kPutQueue : kReadQueue].room == 0;
    if (s.has_next) return true;
    s.oracle->ask(s.next, now);
    const KeyHash hash = s.oracle->workload().hash(s.next.key);
    if (s.next.put) {
      if (s.put == s.answered) s.waiting_since = now;
      OneSidedPut& put = s.puts[s.put % s.puts.size()];
      put.request = s.next;
      s.oracle->fill(s.next, put.end - s.layout.message_bytes());
      set_put_key(s.layout, put.end, hash);
      if (!send_put(s, ++s.put, end)) return false;
    } else {
      OneSidedGet<Access>& get = *s.free_gets[--s.free];
      get.request = s.next;
      get.piece = get.get.begin(*s.access, hash);
      if (!read_piece(s, get, end)) return false;
    }
  }
  return true;
}

// PUTs up to `number` are executed. Returns how many of them were outstanding.
template <class Access>
inline std::uint64_t take_answer(OneSidedClientState<Access>& s, std::uint64_t number, Picos now, bool measured) {
  std::uint64_t count = 0;
  for (; s.answered < number && s.answered < s.put; ++count) {
    s.oracle->put_done(s.puts[s.answered++ % s.puts.size()].request, now, measured);
  }
  if (count > 0) s.waiting_since = now;
  return count;
}

// A READ has completed: the GET READs on, or is done.
template <class Access>
inline bool take_read(OneSidedClientState<Access>& s, std::uint32_t index, Picos now, bool measured, RunEnd& end) {
  OneSidedGet<Access>& get = s.gets[index];
  const GetStep step = get.get.take(*s.access, get.got, get.piece, s.counts[measured ? 1 : 0]);
  switch (step.kind) {
    case GetStep::Kind::read_on:
      return read_piece(s, get, end);
    case GetStep::Kind::found:
      s.oracle->hit(get.request, step.value, s.layout.value_bytes, now, measured);
      break;
    case GetStep::Kind::unchecked:
      s.oracle->got_unchecked(get.request, now, measured);
      break;
    case GetStep::Kind::missing:
      s.oracle->missed(get.request, now, measured);
      break;
  }
  s.free_gets[s.free++] = &get;
  return true;
}

// Takes up to `most` completions. Returns how many, or -1 with `end` set.
template <class Access>
inline int take_completed(OneSidedClientState<Access>& s, std::uint64_t most, Picos now, bool measured, RunEnd& end) {
  return take_completions<kCompletionBatch>(s.cq, most, end, [&](const ibv_wc& wc) {
    if (!is_send_id(wc.wr_id)) {
      std::uint64_t number;
      std::memcpy(&number, s.recvs.payloads + recv_place(wc.wr_id) * s.recvs.stride, sizeof number);
      if (take_answer(s, number, now, measured) == 0) ++s.oracle->counts.surplus;
      return post_next_recvs(s.recvs, kPutQueue, end);
    }
    const std::uint32_t queue = sent_queue(wc.wr_id);
    retire_signaled(s.queues[queue]);
    return queue == kPutQueue || take_read(s, sent_request(wc.wr_id), now, measured, end);
  });
}

// Resends all outstanding PUTs in their order, as far as there is room, if the oldest has waited for too long.
template <class Access>
inline bool ask_again(OneSidedClientState<Access>& s, Picos now, RunEnd& end) {
  if (s.put == s.answered || now - s.waiting_since < s.retry_after) return true;
  s.waiting_since = now;
  ++s.attempts;
  for (std::uint64_t number = s.answered + 1; number <= s.put && s.queues[kPutQueue].room > 0; ++number) {
    ++s.oracle->counts.retries;
    if (!send_put(s, number, end)) return false;
  }
  return true;
}

template <class Access>
template <Node N>
int OneSidedClientState<Access>::take(N& node, OperationMeter& meter, RunEnd& end) {
  const bool measured = meter.measuring();
  const std::uint64_t before = oracle->done();
  const std::uint64_t left = meter.left();
  std::uint64_t taken = 0;
  if (answer != nullptr && put != answered) {
    node.poll_memory();
    const auto number = load_word<std::uint64_t>(answer);  // of the last of several PUTs; the rest can wait
    taken = take_answer(*this, std::min(number, answered + left), node.now(), measured);
  }
  const int count = take_completed(*this, left - taken, node.now(), measured, end);
  if (count < 0) return -1;
  const std::uint64_t done = oracle->done() - before;
  if (done > 0 && meter.add_and_note(node, meter.phase(), done)) {
    oracle->begin_interval();
    counts[0].add(counts[1]);
    counts[1] = {};
  }
  return count + (taken > 0 ? 1 : 0);
}

template <class Access>
template <Node N>
bool OneSidedClientState<Access>::wait(N& node, IdleWait& idle, RunEnd& end) {
  if (!ask_again(*this, node.now(), end)) return false;
  if (put != answered) {
    node.idle_until(waiting_since + retry_after);
  } else {
    idle.idle(node);
  }
  return true;
}

}  // namespace verbscope
