// Sums of the records of a process: per QP, per thread and in total. Also reads the files that traced processes write,
// while they run or after they have ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Sums of counts, of a QP, of a thread or of all. Counts that belong to no QP (polls, RECVs of shared queues) are only
// in the sums of threads and of all.
struct Sums {
  SendTotals sends;
  std::uint64_t lists = 0;  // posts of two requests and more
  std::uint64_t by_list[kListClasses] = {};
  std::uint64_t failed_posts = 0;
  std::uint64_t send_completions = 0;
  std::uint64_t by_status[kStatuses] = {};  // failed completions
  std::uint64_t samples = 0;
  std::uint64_t by_time[kTimeClasses] = {};  // in ticks of the time stamp counter
  Recvs recvs;
  ReceiveTotals received;
  std::uint64_t empty_polls = 0;
  std::uint64_t polls = 0;  // that returned completions
  std::uint64_t polled = 0;
  std::uint64_t failed_polls = 0;
  std::uint64_t arms = 0;
  std::uint64_t by_batch[kListClasses] = {};
  PcieCost pcie;  // of all above

  std::uint64_t requests() const;
  std::uint64_t posts() const { return sends.alone + lists; }
  std::uint64_t doorbells() const { return posts() - sends.blueflames; }
  std::uint64_t errors() const;
};

// Requests of one shape.
struct CountedRequests {
  Request request;
  std::uint64_t count = 0;
};

// The activity of one thread on one QP: the input of findings and limits.
struct QueueUse {
  std::uint32_t qp = 0;  // index in Summary::qps
  std::uint32_t thread = 0;
  std::vector<CountedRequests> requests;  // without those of shapes beyond the sixteenth
  std::uint64_t lists = 0;
  std::uint64_t turns = 0;  // times that the thread switched to this QP from another
  std::uint64_t send_completions = 0;
  std::uint64_t recvs = 0, recv_posts = 0;
  std::uint64_t received = 0, received_bytes = 0;
  std::uint64_t reads_outstanding = 0;  // maximum in samples
  AtomicAddresses atomics;
};

// The polls of one thread on one completion queue.
struct PollUse {
  std::uint32_t thread = 0;
  std::uint64_t polls = 0;  // that returned completions
  std::uint64_t empty = 0;
  std::uint64_t in_passing = 0;  // empty polls with other work since the last poll: the thread did not wait
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
  bool unknown = false;  // shared by all QPs that had no room
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
  std::uint64_t late_registrations = 0, late_pages = 0;  // while queues of the context were in use
  Sums sums{};                                           // of all that belongs to it
};

// With --verify: results of checking the WQEs of a context.
struct CheckSummary {
  struct Found {
    std::uint64_t count = 0;
    bool filled = false;  // false if the process was killed before it stored the example
    DifferenceExample example;
  };
  std::uint32_t context = 0;
  QueueMemory memory = QueueMemory::readable;
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

// Sums the records behind a header in memory, even while threads count. All counts it returns did occur, but they are
// from one moment only if no thread counts meanwhile.
Summary summarize(const TraceHeader& header);

// Summarizes this process's own counts.
Summary summarize_process();

// Summarizes the file at `path`. Throws Error if it cannot be read, is not a trace file, is truncated, or was written
// by another build of the library.
Summary read_trace_file(const std::filesystem::path& path);

// All files of a folder, ordered by the start of their processes. Skips files that are still being created.
std::vector<Summary> read_trace_folder(const std::filesystem::path& folder);

// The library's name in the folder of the programs.
inline constexpr const char* kLibrary = "libverbscope_trace.so";

}  // namespace verbscope::driver
