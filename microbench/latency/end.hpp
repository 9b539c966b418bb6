// One side of a latency measurement as a workload: places the messages in the region, prebuilds the requests, and runs
// one of the loops of loop.hpp.
#pragma once

#include <memory>
#include <vector>

#include "common/enum_table.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/latency/loop.hpp"

namespace verbscope {

// A trip is one operation and its response. An echo is a WRITE with a WRITE as its response, both inlined and mostly
// unsignaled.
enum class LatencyVerb : std::uint8_t { read, write, write_inline, send, fetch_add, compare_swap, echo };

struct LatencyVerbRow {
  LatencyVerb value;
  const char* name;  // in options and records
  Verb posted;       // by the initiator
};

inline constexpr EnumTable<LatencyVerb, LatencyVerbRow> kLatencyVerbs = {{
    {LatencyVerb::read, "read", Verb::read},
    {LatencyVerb::write, "write", Verb::write},
    {LatencyVerb::write_inline, "write_inline", Verb::write},
    {LatencyVerb::send, "send", Verb::send},
    {LatencyVerb::fetch_add, "fetch_add", Verb::fetch_add},
    {LatencyVerb::compare_swap, "compare_swap", Verb::compare_swap},
    {LatencyVerb::echo, "echo", Verb::write},
}};
static_assert(in_order(kLatencyVerbs));

constexpr Verb posted_verb(LatencyVerb verb) {
  return row_of(kLatencyVerbs, verb).posted;
}
bool is_atomic(LatencyVerb verb);
// True if the peer's CPU posts the response.
bool is_ping_pong(LatencyVerb verb);
// True if the latency is half the round trip, as perftest reports WRITE and SEND. For READ, atomics and echo it is the
// round trip.
bool reports_half(LatencyVerb verb);

// Bytes of the region that a QP of either side needs for messages of `payload` bytes.
std::uint64_t latency_slice_bytes(std::uint32_t payload);
// Posted RECVs per side in a ping-pong by SEND.
std::uint32_t latency_recvs(const Operation& op);
// Fills every slice of a region with the message to send, or to be read.
void fill_latency_region(const Operation& op, std::span<std::byte> region);

class LatencyEnd final : public WorkloadOn<LatencyEnd> {
 public:
  // The server initiates. A client responds, in ping-pongs only.
  LatencyEnd(const ThreadSetup& setup, LatencyVerb verb);

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    if (!initiates_)
      return verb_ == LatencyVerb::send ? send_responder(node, state_, control, tally)
                                        : write_responder(node, state_, control, tally);
    if (verb_ == LatencyVerb::send) return latency_loop<MessageTrip>(node, state_, control, tally);
    if (is_ping_pong(verb_)) return latency_loop<MemoryTrip>(node, state_, control, tally);
    latency_loop<CompletionTrip>(node, state_, control, tally);
  }

  bool active() const override { return initiates_; }
  bool counts() const override { return initiates_; }
  std::uint64_t wrong() const override { return state_.wrong; }

  std::uint64_t checked() const override { return state_.checked; }
  const LatencyState& state() const { return state_; }

 private:
  void lay_out(const ThreadSetup& setup);
  void build_request(const ThreadSetup& setup);
  void post_recvs(const ThreadSetup& setup);

  LatencyVerb verb_;
  bool initiates_;
  std::vector<std::byte> pattern_;  // at least one byte, so that pattern_end is not null
  ibv_sge recv_segment_{};
  LatencyState state_;
};

// Merged results of the threads of one node: "trip" ("half" or "full"), "latency" with an object for the size, and the
// keys of that object again at the top level. A histogram is a list of [nanoseconds, samples].
Json latency_json(const std::vector<const LatencyEnd*>& ends, LatencyVerb verb);
// The heading and the line of a result from latency_json, for the console. Empty for the side that responds.
std::string latency_heading(const Json& result);
std::string latency_row(const Json& result);

}  // namespace verbscope
