// Packets of RPCs as UD SENDs on one QP: a ring of RECVs, and a send queue whose requests are posted in lists. Data
// path.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "common/ring.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/batch_counts.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/rpc/packet.hpp"
#include "wire/packet.hpp"

namespace verbscope {

class DatagramTransport {
 public:
  // RECVs per post: a list, or a descriptor of a multi-packet receive queue.
  static constexpr std::uint32_t recv_list(const Operation& operation) {
    return std::max(kRecvList, operation.recvs_per_descriptor);
  }
  // Uses the first lane of the thread. `bytes`: of the longest packet; `recvs`: of its receive queue, a multiple of
  // recv_list(), posted at once. `alone`: up to this many packets are posted one by one, so that BlueFlame can bring
  // their WQEs to the adapter; more are posted in lists, whose WQEs it fetches. Throws Error.
  DatagramTransport(const ThreadSetup& setup, std::uint32_t bytes, std::uint32_t recvs, std::uint32_t alone = 1);
  DatagramTransport(const DatagramTransport&) = delete;
  DatagramTransport& operator=(const DatagramTransport&) = delete;

  static constexpr std::uint32_t kRecvList = 32;           // RECVs per post
  static constexpr std::uint32_t kMultiPacketRecvs = 512;  // of a descriptor (eRPC, section 4.1.1)
  static constexpr std::uint32_t kSendList = 16;           // packets per doorbell (eRPC, NSDI 2019)
  static constexpr std::uint32_t kSegments = 2;            // of a packet: header and data

  std::uint32_t room() const { return static_cast<std::uint32_t>(room_end_ - next_); }

  // Appends a packet with `bytes` bytes of data. Its header is in front of the data, or apart.
  [[gnu::always_inline]] void append(const UdAddress& to, const std::byte* header, const std::byte* data,
                                     std::uint32_t bytes, std::uint32_t lkey) {
    Place& place = take_place_for(to);
    place.segments[0] = {reinterpret_cast<std::uint64_t>(header), kPacketHeaderBytes, lkey};
    place.wr.num_sge = 1;
    if (header + kPacketHeaderBytes == data) {
      place.segments[0].length += bytes;
    } else {
      place.segments[1] = {reinterpret_cast<std::uint64_t>(data), bytes, lkey};
      place.wr.num_sge = 2;
    }
    mark(place.wr, kPacketHeaderBytes + bytes);
  }
  // Appends a packet without data.
  void append_header(const UdAddress& to, const PacketHeader& header) {
    Place& place = take_place_for(to);
    std::byte* const copy = headers_.data() + places_.place(next_ - 1) * kPacketHeaderBytes;
    std::memcpy(copy, &header, sizeof header);
    place.segments[0] = {reinterpret_cast<std::uint64_t>(copy), kPacketHeaderBytes, headers_mr_.lkey()};
    place.wr.num_sge = 1;
    mark(place.wr, kPacketHeaderBytes);
  }

  // Posts the appended packets. Returns false, with `end` set, if a post failed.
  [[gnu::always_inline]] bool post(RunEnd& end) {
    while (posted_ != next_) {
      const std::uint64_t appended = next_ - posted_;
      const std::uint64_t length = appended <= alone_ ? 1 : std::min<std::uint64_t>(appended, kSendList);
      ibv_send_wr* const first = &places_[posted_].wr;
      posted_ += length;
      ibv_send_wr& last = places_[posted_ - 1].wr;
      ibv_send_wr* const following = std::exchange(last.next, nullptr);
      batches_.count(static_cast<std::uint32_t>(length));
      const bool posted = post_placed(queue_, first, end);
      last.next = following;
      if (!posted) return false;
    }
    return true;
  }

  // Posts the appended packets, and waits until the adapter has sent them and all earlier ones. Packets that arrive
  // meanwhile are received later. Does nothing if no packet was appended. Returns false, with `end` set, on a failure.
  template <Node N>
  bool flush(N& node, RunEnd& end) {
    if (posted_ == next_) return true;
    ibv_send_wr& last = places_[next_ - 1].wr;
    last.wr_id = send_id(queue_.index, (last.send_flags & IBV_SEND_SIGNALED) != 0 ? kCountedMark : kFlushMark);
    last.send_flags |= IBV_SEND_SIGNALED;
    flushing_ = true;
    if (!post(end)) return false;
    last.wr_id = send_id(queue_.index);
    const Picos give_up = node.now() + kLongestFlush;
    while (flushing_) {
      const int count = poll(end, [&](const ibv_wc& wc) {
        stored_[stored_tail_++] = {recv_place(wc.wr_id), wc.byte_len};
      });
      if (count < 0) return false;
      if (!flushing_) break;
      if (node.now() > give_up) {
        end = {.kind = EndKind::poll_failed, .code = ETIMEDOUT, .queue = queue_.index};
        return false;
      }
      if (count == 0) node.idle_until(give_up);
    }
    return true;
  }

  // Hands the packets that have arrived to `take(packet, bytes)`. Returns 0 if there was no completion at all, so that
  // the thread may wait for one, else a positive number, or -1 with `end` set.
  template <class Take>
  [[gnu::always_inline]] int receive(RunEnd& end, Take&& take) {
    const int stored = stored_head_ == stored_tail_ ? 0 : hand_over_stored(take);
    sends_completed_ = 0;
    const int count = poll(
        end, [&](const ibv_wc& wc) __attribute__((always_inline)) {
          hand_over({recv_place(wc.wr_id), wc.byte_len}, take);
        });
    if (count < 0) return -1;
    const std::uint32_t packets = static_cast<std::uint32_t>(stored + count) - sends_completed_;
    recvs_lane_.consumed += packets;
    recvs_lane_.received += packets;
    return stored + count;
  }

  // Whether a switch has marked a received packet for congestion. Only on Ethernet.
  static bool marked(const std::byte* packet) { return is_ecn_marked(packet - kGrhBytes); }

  // The packets that were received have been read: their RECVs are posted again.
  bool release(RunEnd& end) {
    for (; recvs_lane_.consumed >= recvs_lane_.list; recvs_lane_.consumed -= recvs_lane_.list) {
      if (!post_next_recvs(recvs_lane_, queue_.index, end)) return false;
    }
    return true;
  }

  std::uint64_t received() const { return recvs_lane_.received; }
  // Packets that were appended so far, and the request of one of the last `tx_depth` of them.
  std::uint64_t appended() const { return next_; }
  const ibv_send_wr& request(std::uint64_t packet) const { return places_[packet].wr; }

  // Lists of packets posted since the last clear_batches().
  const BatchCounts& batches() const { return batches_; }
  void clear_batches() { batches_ = {}; }

  std::string memory() const { return recvs_.memory(); }

 private:
  struct Place {
    ibv_send_wr wr{};
    ibv_sge segments[kSegments]{};
    Place* following = nullptr;
  };
  struct Received {
    std::uint32_t place = 0;
    std::uint32_t bytes = 0;  // with the GRH
  };
  // The last request of a flush: signaled only for it, so that its completion retires nothing, or also in its turn.
  static constexpr std::uint32_t kFlushMark = 1;
  static constexpr std::uint32_t kCountedMark = 2;
  // A software device on a machine that has no core free takes seconds.
  static constexpr Picos kLongestFlush = std::chrono::seconds(10);
  static constexpr std::uint32_t kGrhBytes = static_cast<std::uint32_t>(kGrh.value);

  [[gnu::always_inline]] Place& take_place_for(const UdAddress& to) {
    Place& place = *next_place_;
    next_place_ = place.following;
    ++next_;
    place.wr.wr.ud = to;
    return place;
  }
  // Takes the next place of the send queue. Every signal_every-th request is signaled (SendQueue).
  [[gnu::always_inline]] void mark(ibv_send_wr& wr, std::uint32_t bytes) {
    wr.send_flags = bytes <= inline_bytes_ ? unsigned{IBV_SEND_INLINE} : 0u;
    if (--queue_.to_signaled > 0) [[likely]]
      return;
    wr.send_flags |= IBV_SEND_SIGNALED;
    queue_.to_signaled = queue_.signal_every;
  }

  template <class Take>
  [[gnu::always_inline]] void hand_over(const Received& received, Take&& take) {
    take(recvs_lane_.payloads + received.place * recvs_lane_.stride, received.bytes - kGrhBytes);
  }
  template <class Take>
  [[gnu::noinline]] int hand_over_stored(Take&& take) {
    int stored = 0;
    for (; stored_head_ != stored_tail_; ++stored_head_, ++stored) hand_over(stored_[stored_head_], take);
    return stored;
  }

  // Takes completions. Returns their number, or -1 with `end` set.
  template <class OnRecv>
  [[gnu::always_inline]] int poll(RunEnd& end, OnRecv&& on_recv) {
    return take_completions<kRateBatch>(
        cq_, kRateBatch, end, [&](const ibv_wc& wc) __attribute__((always_inline)) {
          if (!is_send_id(wc.wr_id)) return on_recv(wc);
          ++sends_completed_;
          if (sent_request(wc.wr_id) != 0) flushing_ = false;
          if (sent_request(wc.wr_id) != kFlushMark) room_end_ += queue_.signal_every;
        });
  }

  ibv_cq* cq_;
  SendQueue queue_;  // its `room` is not kept, but `room_end_`
  std::uint32_t inline_bytes_;
  std::uint32_t alone_;
  Ring<Place> places_;      // requests from their append to their post, chained in this order
  Place* next_place_;       // of the next packet
  std::uint64_t next_ = 0;  // its number
  std::uint64_t room_end_;  // packets below this number have room in the send queue
  std::uint64_t posted_ = 0;
  Buffer headers_;  // of packets without data, by place
  Mr headers_mr_;
  RecvRings recvs_;
  RecvLane recvs_lane_;
  Ring<Received> stored_;  // packets that arrived during a flush
  std::uint64_t stored_head_ = 0, stored_tail_ = 0;
  bool flushing_ = false;
  std::uint32_t sends_completed_ = 0;  // in the last receive()
  BatchCounts batches_;
};

}  // namespace verbscope
