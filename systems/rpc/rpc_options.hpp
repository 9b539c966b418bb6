// What can be chosen about an endpoint for RPCs, and what it counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/histogram.hpp"
#include "common/units.hpp"
#include "microbench/bench/option_table.hpp"
#include "systems/rpc/packet.hpp"
#include "systems/rpc/timely.hpp"
#include "verbs/resources.hpp"
#include "wire/dcqcn.hpp"

namespace verbscope {

// Computing time on a simulated machine, besides posts and polls; a host spends its own.
struct RpcCosts {
  // To send or to receive a packet, handlers included. Calibrated on erpc19-s62-nocc-cx4.
  Picos packet{22'900};
  // The same for FaSST, which has no sessions, credits, or retransmission. Assumed: three quarters of it.
  Picos fasst_packet{17'000};
  Picos stamp{8'000};               // rdtsc (eRPC, NSDI 2019, section 5.2.2)
  Picos allocate{20'000};           // assumed: a message buffer
  Picos rate_update{15'000};        // assumed: Timely or DCQCN, a few divisions
  Picos limiter{10'000};            // assumed: a packet through the timing wheel
  double copy_bytes_per_ns = 12.2;  // calibrated on erpc19-f6-peak-cx5ib

  Picos copy(std::uint32_t bytes) const { return Picos(static_cast<std::int64_t>(1000 * bytes / copy_bytes_per_ns)); }
};

enum class RpcControl : std::uint8_t { none, timely, dcqcn };

struct RpcOptions {
  std::uint32_t credits = 32;               // of a session (eRPC, section 4.3.1)
  std::uint32_t recvs = 4096;               // that are always posted: at least `credits` per session
  Picos rto{5'000'000'000};                 // packets without an answer for this long are sent again (section 5.2.3)
  std::uint32_t most_timeouts = 10;         // of a call in a row, at least 1; after one more its session fails
  std::uint16_t first_epoch = kUsualEpoch;  // of each session number
  RpcControl control = RpcControl::none;
  TimelyParameters timely{};
  DcqcnParameters dcqcn{.min_rate = {TimelyParameters().floor}};  // lowest rate as with Timely
  std::uint32_t frame_overhead = 0;  // bytes of a packet on the wire besides its header and data, for the rate limiter
  // The optimisations of sections 4.2 and 5.2.2.
  bool batched_stamps = true;  // one time stamp per batch of packets
  bool bypass_timely = true;   // no update at link rate while round trips are short, with DCQCN answers unmarked
  bool bypass_limiter = true;  // packets at link rate are sent at once
  bool preallocate = true;     // responses of one packet
  bool zero_copy = true;       // a request of one packet stays in its RECV's buffer
  bool time_work = false;      // on a host; a simulated machine always does
  RpcCosts costs{};
  Histogram* round_trips = nullptr;  // of packets, as the client sees them; may be null

  // How long a call waits after this many time-outs in a row. The wait doubles with each, up to kMostDoublings times.
  // Otherwise packets that are sent again would fill a queue that is already too long.
  static constexpr std::uint32_t kMostDoublings = 3;
  Picos wait_after(std::uint32_t timeouts) const { return rto * (1 << std::min(timeouts, kMostDoublings)); }

  double lowest_rate() const { return control == RpcControl::dcqcn ? dcqcn.min_rate.value : timely.floor; }
  std::uint32_t most_sessions() const { return recvs / credits; }
  // A session with all credits in the limiter at the lowest rate waits this long.
  Picos wheel_horizon(std::uint32_t packet_bytes) const {
    return Picos(static_cast<std::int64_t>(1e12 * credits * packet_bytes / lowest_rate()));
  }
};

// Registers --cc.
void add_control_option(OptionTable& table, RpcOptions& options);
// Registers --loss, the share of packets that a simulated network loses (none: the profile's).
void add_loss_option(OptionTable& table, std::optional<double>& loss);
// Fails for a wrong --loss, and on other fabrics.
void check_loss(std::optional<double> loss, const std::string& fabric);

// The options with the rate of the device's port. Throws Error if --cc needs what the device lacks.
RpcOptions for_port_of(const Device& device, RpcOptions options);

struct RpcCounts {
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t answered = 0;  // requests over, at the client
  std::uint64_t handled = 0;   // calls of handlers
  std::uint64_t timeouts = 0;
  std::uint64_t retransmitted = 0;        // packets
  std::uint64_t stale = 0;                // repeated or reordered packets, dropped
  std::uint64_t dropped_for_limiter = 0;  // responses while a copy of the request was in the rate limiter
  std::uint64_t unknown = 0;              // packets that no peer can have sent
  std::uint64_t strange = 0;              // packets of no open session: of an earlier one, or of a stranger
  std::uint64_t credit_stalls = 0;        // requests that had to wait for credits
  std::uint64_t limited = 0;              // packets through the rate limiter
  std::uint64_t rate_updates = 0;
  std::uint64_t marks = 0;          // marked packets at the server, with DCQCN
  std::uint64_t flushes = 0;        // of the send queue
  std::uint64_t request_bytes = 0;  // data of requests that the server took, once and in order
};

struct RpcCountKey {
  const char* name;  // in records
  std::uint64_t RpcCounts::*count;
};
inline constexpr std::array<RpcCountKey, 16> kRpcCounts = {{{"packets_sent", &RpcCounts::packets_sent},
                                                            {"packets_received", &RpcCounts::packets_received},
                                                            {"answered", &RpcCounts::answered},
                                                            {"handled", &RpcCounts::handled},
                                                            {"timeouts", &RpcCounts::timeouts},
                                                            {"retransmitted", &RpcCounts::retransmitted},
                                                            {"stale", &RpcCounts::stale},
                                                            {"dropped_for_limiter", &RpcCounts::dropped_for_limiter},
                                                            {"unknown", &RpcCounts::unknown},
                                                            {"strange", &RpcCounts::strange},
                                                            {"credit_stalls", &RpcCounts::credit_stalls},
                                                            {"limited", &RpcCounts::limited},
                                                            {"rate_updates", &RpcCounts::rate_updates},
                                                            {"marks", &RpcCounts::marks},
                                                            {"flushes", &RpcCounts::flushes},
                                                            {"request_bytes", &RpcCounts::request_bytes}}};

}  // namespace verbscope
