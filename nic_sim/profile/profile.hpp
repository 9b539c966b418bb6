// A cluster profile (configs/clusters/NAME.json): the capacities, service times, sizes and latencies of the machines
// that are simulated. No rate of any benchmark is in it. docs/simulator.md says what each parameter does.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/enum_table.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope {

// CPU and memory of one machine. Times are CPU time of the calling thread unless they say otherwise.
struct HostProfile {
  int cores;
  Picos post_call;      // one ibv_post_send
  Picos post_wqe;       // each WQE in it
  Picos wc_line;        // each 64-byte line written to the NIC with write combining
  Picos doorbell;       // one doorbell MMIO with its fences
  Picos poll_call;      // one ibv_poll_cq
  Picos poll_cqe;       // each completion that it returns
  Picos poll_memory;    // one look at memory that peers write to
  Picos atomic_add;     // an atomic add to a line that this core changed last: it waits for the stores before it
  Picos line_transfer;  // a line that another core changed comes over; it serves one core at a time
  // When a spin lock is handed over each of so many that wait costs a line_transfer, and the others such a share of it.
  std::uint32_t spinners_at_once;
  double spinner_share;
  std::uint32_t queue_lines;  // cache lines of a QP or a CQ that come over with its lock
  Picos event_wakeup;         // latency from an interrupt until the thread that slept runs
  Picos post_recv_call;       // one ibv_post_recv
  Picos post_recv_wqe;        // each WQE in it
  Picos register_call;        // one ibv_reg_mr; the ibv_dereg_mr that undoes it is not charged
  Picos register_page;        // each page of 4 KB in it
  static constexpr std::size_t kMostWcBuffers = 64;
  std::uint64_t wc_buffers;          // lines that a core may have on their way to the link before it stalls
  Picos memory_read;                 // latency: root complex and last-level cache, for a read by the NIC
  Picos memory_read_jitter;          // uniform extra on top, 0 to this
  Picos dram;                        // latency of a load by a thread that misses the caches
  std::uint64_t outstanding_misses;  // of a core: one more waits for the first of them
  double slow_read_probability;
  Picos slow_read_extra;  // what a slow read (DRAM refresh, snoop) takes on top
  Picos memory_write;     // latency from the link until a write by the NIC can be seen
};

// The PCIe link beyond its wire facts.
struct LinkProfile {
  double tlp_share;   // share of the raw bandwidth to the NIC left to TLPs by link-layer packets and idle symbols
  double host_share;  // share of that to the host, also by what the root complex takes to write to memory
  Picos mmio_gap;     // extra time on the link behind each MMIO write (drain of a write-combining buffer)
  Picos propagation;  // one way, root complex to NIC
  std::uint64_t read_tags;
  Bytes posted_credits;  // posted writes that the NIC may have queued before its units wait
};

// A value of a parameter that is a word, as profiles, options and records have it.
template <class E>
struct Word {
  E value;
  std::string_view name;
};

// What a cache throws out to make room: the entry that came first, or any.
enum class Replacement : std::uint8_t { oldest, random };
inline constexpr EnumTable<Replacement, Word<Replacement>> kReplacements{
    {{Replacement::oldest, "oldest"}, {Replacement::random, "random"}}};
static_assert(in_order(kReplacements));

// How adapters react when switches mark packets for congestion.
enum class CongestionControl : std::uint8_t { none, dcqcn };
inline constexpr EnumTable<CongestionControl, Word<CongestionControl>> kCongestionControls{
    {{CongestionControl::none, "none"}, {CongestionControl::dcqcn, "dcqcn"}}};
static_assert(in_order(kCongestionControls));

// DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3 and its parameters.
struct DcqcnProfile {
  Picos cnp_interval{std::chrono::microseconds(50)};    // between two CNPs of a flow
  double gain = 1.0 / 256;                              // g of the estimate alpha
  Picos alpha_timer{std::chrono::microseconds(55)};     // without a CNP for so long alpha falls
  Picos increase_timer{std::chrono::microseconds(55)};  // the timer of rate increases
  Bytes increase_bytes{10'000'000};                     // and their byte counter
  int fast_recovery = 5;                                // F: increases of either kind before the target rises
  BytesPerSecond additive{40e6 / 8};                    // R_AI
  BytesPerSecond hyper{400e6 / 8};                      // R_HAI
  BytesPerSecond least{10e6 / 8};                       // no flow is slowed below this
};

struct NicProfile {
  int requester_units;
  Picos front_end;             // from a doorbell's or a WQE's arrival until fetch or scheduling
  Picos doorbell_wqe;          // requester unit, each WQE that was fetched by DMA
  Picos blueflame_wqe;         // requester unit, each WQE that came by BlueFlame
  Picos wqe_block;             // requester unit, each 64-byte block of the WQE
  Picos gather;                // requester unit, each packet whose payload it has read by DMA
  Picos next_packet;           // requester unit, each further packet of a message
  int responder_units;         // they take in all that arrives: requests, and the answers to what this side asked for
  Picos handle_ack;            // responder unit, each acknowledgement
  Picos handle_response;       // responder unit, each packet of a response to a READ or an atomic
  Picos receive_packet;        // responder unit, each request packet
  Picos receive_dma;           // responder unit, each DMA that the packet causes (payload, CQE)
  Picos receive_line;          // and each cache line after the first of the payload that it moves
  Picos receive_inline;        // responder unit, a payload that it writes into the place of its RECV (inline receive)
  Picos read_request;          // responder unit, what a READ takes beyond a packet with one DMA
  Picos read_response;         // mean latency of a response to a READ, beyond the PCIe read of its bytes
  Picos atomic_packet;         // responder unit, what an atomic takes beyond a packet with two DMAs
  Picos atomic_operation;      // an atomic's slot, beyond the PCIe read that it waits for
  std::uint64_t atomic_slots;  // a power of two
  int atomic_slot_lowest_bit;  // of the address: the slot is its bits from this one up
  Picos transmit;              // latency from a unit to the port
  Bytes wqe_cache;             // WQEs from their arrival until they are sent
  Bytes sent_wqe_cache;        // WQEs that wait for a response
  Replacement sent_wqe_replacement;
  Picos reread_wqe;                  // each read that brings WQEs again: of the unit that needs them
  Bytes wqe_fetch_ahead;             // per requester unit: WQEs fetched by DMA and not yet taken up
  Bytes qp_context;                  // a requester's state of one QP, read on a miss
  Bytes qp_responder_context;        // a responder's
  Bytes qp_context_cache;            // of requesters' states
  Bytes qp_responder_context_cache;  // 0: responders' are in that of requesters'
  std::uint64_t near_qp_contexts;    // QPs whose states are nearest to the units
  Picos far_qp_context;              // another QP's state comes so much later, each time that it is used
  Picos qp_context_miss;             // what a miss takes beyond the PCIe read
  std::uint64_t qp_context_reads;    // misses whose reads are under way at once
  Bytes translation_cache;
  Bytes input_buffer;  // per port: packets that have left the switch and are not yet handled
  int ack_coalescing;  // messages that one acknowledgement may cover while more are waiting
  CongestionControl congestion_control = CongestionControl::none;
  DcqcnProfile dcqcn{};
  // What firmware makes of a QP's timeout: the least code that it follows, and how many times of it pass.
  int ack_timeout_floor = 0;
  int ack_timeout_factor = 1;

  // Local ACK Timeout: 4.096 us * 2^code (InfiniBand Architecture Specification 1.3, volume 1, section 9.7.6.1.3).
  Picos ack_wait(int code) const {
    return Picos(4'096'000LL << (code < ack_timeout_floor ? ack_timeout_floor : code)) * ack_timeout_factor;
  }
};

// What a switch does with its packet buffer when it gets full.
enum class FlowControl : std::uint8_t { credits, tail_drop, pfc };
inline constexpr EnumTable<FlowControl, Word<FlowControl>> kFlowControls{
    {{FlowControl::credits, "credits"}, {FlowControl::tail_drop, "none"}, {FlowControl::pfc, "pfc"}}};
static_assert(in_order(kFlowControls));

// An Ethernet switch and the way to others. Sizes are those of each switch.
struct SwitchProfile {
  Bytes buffer{0};               // packets of all ports share it
  double alpha = 1;              // a queue may have so many times what is free of it (Choudhury and Hahne, ToN 1998)
  Bytes pfc_xoff{0};             // of a port and a priority: the sender is paused above this
  Bytes pfc_xon{0};              // and goes on below this
  Bytes ecn_least{0};            // K_min: packets are marked from this length of a queue on
  Bytes ecn_most{0};             // K_max: all packets are marked from this length on; 0: none ever is
  double ecn_probability = 0;    // P_max: the share that is marked just below K_max
  std::uint32_t rack_nodes = 0;  // nodes of a switch; 0: all
  std::uint32_t uplinks = 0;     // cables from each rack's switch to the spine
  BytesPerSecond uplink_rate;    // of each
};

struct FabricProfile {
  Picos cable;  // one way, port to switch
  Picos switch_latency;
  double port_share;        // share of a port's data rate left to packets by flow control, idle symbols and gaps
  double loss_probability;  // share of packets that the switch drops
  FlowControl flow_control = FlowControl::credits;
  SwitchProfile switches{};  // of an Ethernet network
};

struct Profile {
  std::string name;
  ClusterWire wire;
  HostProfile host;
  LinkProfile link;
  NicProfile nic;
  FabricProfile fabric;
};

// Throws Error with one line, which begins with `where`, for an unknown, absent or ill-typed key, or a value that
// cannot be.
Profile read_profile(const Json& json, const std::string& where);

// `name` as find_config("clusters", name) takes it.
Profile load_profile(const std::string& name);

// How many nodes must receive so that together they take more than one sends, whatever its payload: the ratio of a
// sender's and a receiver's unit capacities at their most unequal (a header-only request against one with payload), up
// to kMostReceivers.
inline constexpr int kMostReceivers = 64;
int receivers_needed(const Profile& profile);

}  // namespace verbscope
