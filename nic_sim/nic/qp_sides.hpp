// The two sides of a QP remember this in the NIC: the requester's, which sends requests and gets answers, and the
// responder's, which gets requests and answers.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/units.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/work_queues.hpp"

namespace verbscope::sim {

// READs and atomics under way, by work request, in order. Adapters allow 16 of a QP at once.
inline constexpr std::uint32_t kMostReads = 16;
struct ReadsUnderWay {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  std::array<std::uint64_t, kMostReads> wqes{};

  std::uint64_t count() const { return begun - ended; }
  std::uint64_t oldest() const { return wqes[ended % kMostReads]; }
  std::uint64_t newest() const { return wqes[(begun - 1) % kMostReads]; }
  void begin(std::uint64_t wqe) {
    if (count() == 0) begun = ended = 0;  // few at a time stay in one cache line
    wqes[begun++ % kMostReads] = wqe;
  }
  // READs and atomics from work request `wqe` on will be asked for again.
  void forget_from(std::uint64_t wqe) {
    while (count() > 0 && newest() >= wqe) --begun;
  }
};

// How congestion has slowed a QP: the reaction point of DCQCN, by the names of its paper R_C, R_T and alpha.
struct Pace {
  double rate = 0;    // bytes a second; 0: not limited
  double target = 0;  // likewise
  double alpha = 1;
  Picos alpha_falls{Picos::max()};  // next, without a CNP
  Picos rises{0};                   // next, by the timer
  std::uint64_t bytes = 0;          // since the byte counter's last turn
  int by_timer = 0, by_bytes = 0;   // rises since the last CNP
  Picos next{0};                    // no packet leaves before
  Picos next_cnp{0};                // the notification point tells the peer no earlier
};

// The requester's side of a QP remembers this.
struct RequesterState {
  std::uint32_t unit = 0;              // has it, or had it last
  std::uint32_t fetch_share = 0;       // of fetching WQEs ahead
  UnitTime time;                       // that units had for it
  bool queued = false;                 // it stands in line for a unit
  bool served = false;                 // a unit has it
  bool waiting = false;                // a WQE is being read again for it
  bool waits_for_rnr = false;          // it waits for an RNR timer
  bool waits_for_rate = false;         // its next packet waits for the rate of the QP
  std::uint8_t rnr_waits = 0;          // so many timers were set: all but the last are void
  std::uint32_t packet_of_next = 0;    // packets of the WQE at `next` that are sent
  std::uint32_t sequence_to_post = 0;  // PSN of the next work request that is posted
  std::uint32_t sequence_unsent = 0;   // the first that was never sent
  std::uint32_t acknowledged = 0;      // PSN that the peer has confirmed last
  Picos progress_at{0};                // the last time that something was sent first or acknowledged
  int retries_left = 0;
  int rnr_retries_left = 0;
  SimQp* next_in_line = nullptr;
  PacketQueue unsent;               // packets in order, those whose payload is still being read among them
  PacketQueue answers;              // were taken in, and wait for what is being read
  bool asked_again = false;         // a lost response was asked for again; nothing has come since
  bool reading_for_answer = false;  // the WQE of a response is being read again; answers wait
  bool timer_runs = false;

  bool must_wait() const { return waiting || waits_for_rnr || waits_for_rate; }
};

// The responder's last results of atomics, kept for repeated requests.
struct AtomicResults {
  struct Result {
    std::uint32_t sequence;
    std::uint64_t value;
  };
  std::uint64_t kept = 0;
  std::array<Result, kMostReads> results{};

  void keep(std::uint32_t sequence, std::uint64_t value) { results[kept++ % kMostReads] = {sequence, value}; }
  // Null when it is not kept any more.
  const Result* find(std::uint32_t sequence) const {
    const auto* end = results.data() + std::min<std::uint64_t>(kept, kMostReads);
    const auto* result = std::find_if(results.data(), end, [=](const Result& r) { return r.sequence == sequence; });
    return result == end ? nullptr : result;
  }
};

// What has arrived for a QP and is not done. It outlives a reset.
struct Arrivals {
  PacketQueue line;            // in the order of arrival; a unit may be with the first
  std::uint32_t requests = 0;  // in it
  std::uint32_t unit = 0;      // that has the QP, or had it last
  bool served = false;         // a unit has it
  bool queued = false;         // it stands in the line of QPs
  SimQp* next_in_line = nullptr;
  UnitTime time;    // that units had for it
  Picos latest{0};  // when the last packet comes, or came, to the line
};

// The responder's side of a QP remembers this.
struct ResponderState {
  std::uint32_t expected = 0;        // PSN
  std::uint32_t offset = 0;          // bytes of the present message that have arrived
  bool dropping = false;             // UC: the rest of a message that lost a packet
  bool nak_sent = false;             // one NAK per gap
  std::uint32_t unacknowledged = 0;  // messages since the last ACK
  PacketQueue answers;               // all in order, those whose data are still being read among them
  bool waits_for_rate = false;       // the first of them waits for the rate of the QP
  std::uint32_t reads = 0;           // READs and atomics that are not answered yet
  std::uint32_t atomics = 0;         // so many have not written yet
  // The RECV of the present message.
  bool has_recv = false;
  RecvWqe recv{};
  std::uint64_t recv_index = 0;
  const ibv_sge* recv_sges = nullptr;
};

}  // namespace verbscope::sim
