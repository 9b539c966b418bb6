// The workload of a thread that has one window of READs or WRITEs over all its QPs: the loop of window_loop.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/sender.hpp"

namespace verbscope {

// How a thread waits before it posts more.
enum class WaitFor {
  any,     // for any completion: what is outstanding is counted on each QP (sender.hpp)
  oldest,  // for the oldest of its operations on whatever QP
  all,     // for all of them
};

enum class SeenBy { completion, memory };  // how a READ is seen to be back

struct WindowOptions {
  SenderOptions order;
  std::uint32_t window = 0;  // operations of the thread; 0: as many as --cq_mod and the queues allow
  bool whole = false;        // WaitFor::all
  SeenBy seen_by = SeenBy::completion;
  bool share_of_thread = false;  // operations go to the share that the peer's thread of the same number has
};

// READs whose arrival is seen in memory need a region without zero bytes: it is filled with this.
inline constexpr std::byte kSeenByte{0x5a};

// Makes the workload: builds the requests and registers their payloads. Throws Error.
std::unique_ptr<Workload> make_window_sender(const ThreadSetup& setup, const WindowOptions& options);

}  // namespace verbscope
