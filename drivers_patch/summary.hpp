// What the records of a process add up to: for each QP, for each thread, and in all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Sums of counts, of a QP, of a thread or of all. What belongs to no QP (polls, RECVs of shared queues) is in the sums
// of threads and of all.
struct Sums {
  SendTotals sends;
  std::uint64_t lists = 0;  // posts of two requests and more
  std::uint64_t by_list[kListClasses] = {};
  std::uint64_t failed_posts = 0;
  std::uint64_t send_completions = 0;
  std::uint64_t by_status[kStatuses] = {};  // completions that are no success
  std::uint64_t samples = 0;
  std::uint64_t by_time[kTimeClasses] = {};  // in ticks of the time stamp counter
  Recvs recvs;
  ReceiveTotals received;
  std::uint64_t empty_polls = 0;
  std::uint64_t polls = 0;  // that yielded some
  std::uint64_t polled = 0;
  std::uint64_t failed_polls = 0;
  std::uint64_t arms = 0;
  std::uint64_t by_batch[kListClasses] = {};
  PcieCost pcie;  // of all of that

  std::uint64_t requests() const;
  std::uint64_t posts() const { return sends.alone + lists; }
  std::uint64_t doorbells() const { return posts() - sends.blueflames; }
  std::uint64_t errors() const;
};

// Requests that are alike.
struct CountedRequests {
  Request request;
  std::uint64_t count = 0;
};

// What one thread did with one QP: what findings and limits are reckoned from.
struct QueueUse {
  std::uint32_t qp = 0;  // its place in Summary::qps
  std::uint32_t thread = 0;
  std::vector<CountedRequests> requests;  // but for those of kinds beyond the sixteenth
  std::uint64_t lists = 0;
  std::uint64_t turns = 0;  // times that the thread came to this QP from another
  std::uint64_t send_completions = 0;
  std::uint64_t recvs = 0, recv_posts = 0;
  std::uint64_t received = 0, received_bytes = 0;
  std::uint64_t reads_outstanding = 0;  // most that samples saw
  AtomicAddresses atomics;
};

// What one thread did with one completion queue.
struct PollUse {
  std::uint32_t thread = 0;
  std::uint64_t polls = 0;  // that yielded some
  std::uint64_t empty = 0;
  std::uint64_t in_passing = 0;  // of these the ones in which it did not wait
  std::uint64_t polled = 0;
};

// RECVs that one thread posted to one shared receive queue.
struct SharedRecvUse {
  std::uint32_t thread = 0;
  std::uint64_t recvs = 0, recv_posts = 0;
};

struct QpSummary {
  std::uint32_t context = 0;
  std::uint32_t qp_num = 0;
  bool alive = true;
  bool unknown = false;  // the counts of all QPs that had no room
  bool builder = false;
  QpFacts facts;
  std::vector<std::uint32_t> threads;  // that posted to it or polled its completions
  Sums sums;
};

struct ThreadSummary {
  std::uint32_t number = 0;
  int tid = 0;
  Sums sums;
};

struct ContextSummary {
  std::uint32_t number = 0;
  std::string device;
  bool family_known = false;
  NicFamily family = NicFamily::mlx5;
  std::uint64_t registrations = 0, deregistrations = 0, registered_bytes = 0, registered_pages = 0;
  std::uint64_t qps_made = 0, qps_gone = 0, cqs_made = 0, modifications = 0, address_handles = 0;
  std::uint64_t late_registrations = 0, late_pages = 0;  // when queues were in use already
  Sums sums{};                                           // of all that belongs to it
};

// With --verify: what was found of the WQEs of a context.
struct CheckSummary {
  struct Found {
    std::uint64_t count = 0;
    bool filled = false;  // a process may be killed before it has left the example
    DifferenceExample example;
  };
  std::uint32_t context = 0;
  QueueMemory memory = QueueMemory::there;
  std::uint64_t wqes = 0, left_out = 0, without_memory = 0, first_error = 0;
  Found differences[kDifferences];
};

struct Summary {
  int process = 0;
  std::string program;
  WireFacts wire;
  std::uint64_t without_room = 0;
  std::uint64_t began_ns = 0, began_ticks = 0;
  std::vector<ContextSummary> contexts;
  std::vector<QpSummary> qps;
  std::vector<ThreadSummary> threads;
  std::vector<QueueUse> uses{};
  std::vector<PollUse> poll_uses{};
  std::vector<SharedRecvUse> shared_recv_uses{};
  std::vector<CheckSummary> checks;
  Sums whole;
};

// Reads what stands behind a header in memory, also while others count. All that it yields was counted; sums of one
// moment it yields only when nobody counts.
Summary summarize(const TraceHeader& header);

// The same of the process's own counts.
Summary summarize_process();

}  // namespace verbscope::driver
