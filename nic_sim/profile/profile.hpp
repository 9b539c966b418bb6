// A cluster profile (configs/clusters/NAME.json): capacities, service times, sizes and latencies of the simulated
// machines. It contains no rates of benchmarks. docs/simulator.md describes the parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/enum_table.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "wire/cluster_wire.hpp"
#include "wire/dcqcn.hpp"

namespace verbscope {

// CPU and memory of one machine. Times are CPU time of the calling thread unless stated otherwise.
struct HostProfile {
  int cores;
  // Hyper-threads of a core, and the speed of each of two threads on one core as a share of a thread's alone.
  int threads_per_core;
  double shared_core_speed;
  int hardware_threads() const { return cores * threads_per_core; }
  Picos post_call;      // one ibv_post_send
  Picos post_wqe;       // each WQE in it
  Picos wc_line;        // each 64-byte line written to the NIC with write combining
  Picos doorbell;       // one doorbell MMIO with its fences
  Picos poll_call;      // one ibv_poll_cq
  Picos poll_cqe;       // each completion that it returns
  Picos poll_memory;    // one poll of memory that peers write to
  Picos atomic_add;     // an atomic add to a line that this core changed last, which waits for earlier stores
  Picos line_transfer;  // transfer of a line that another core changed; it serves one core at a time
  // Handing over a spin lock costs a line_transfer for each of this many waiting threads, and this share of one for
  // each further thread.
  std::uint32_t spinners_at_once;
  double spinner_share;
  std::uint32_t queue_lines;  // cache lines of a QP or CQ that move with its lock
  Picos event_wakeup;         // latency from an interrupt until the sleeping thread runs
  Picos post_recv_call;       // one ibv_post_recv
  Picos post_recv_wqe;        // each WQE in it
  Picos register_call;        // one ibv_reg_mr or ibv_resize_cq; ibv_dereg_mr is not charged
  Picos register_page;        // each page of 4 KB in it
  static constexpr std::size_t kMaxWcBuffers = 64;
  std::uint64_t wc_buffers;          // lines that a core may have in flight to the link before it stalls
  Picos memory_read;                 // latency: root complex and last-level cache, for a read by the NIC
  Picos memory_read_jitter;          // uniform extra time, from 0 to this
  Picos dram;                        // latency of a thread's load that misses the caches
  std::uint64_t outstanding_misses;  // per core; another one waits for the first of them
  Bytes last_level_cache;            // of a socket
  double slow_read_probability;
  Picos slow_read_extra;  // extra time of a slow read (DRAM refresh, snoop)
  Picos memory_write;     // latency from the link until a write by the NIC is visible
};

// The PCIe link, in addition to its facts in wire/.
struct LinkProfile {
  double tlp_share;   // share of the raw bandwidth to the NIC that link-layer packets and idle symbols leave to TLPs
  double host_share;  // likewise to the host; also reduced by the root complex's writes to memory
  Picos mmio_gap;     // extra time on the link after each MMIO write (drain of a write-combining buffer)
  Picos propagation;  // one way, root complex to NIC
  std::uint64_t read_tags;
  Bytes posted_credits;  // posted writes that the NIC may queue before its units wait
};

// An enum value with its name in profiles, options and records.
template <class E>
struct Word {
  E value;
  std::string_view name;
};

// Which entry a full cache evicts: the oldest, or a random one.
enum class Replacement : std::uint8_t { oldest, random };
inline constexpr EnumTable<Replacement, Word<Replacement>> kReplacements{
    {{Replacement::oldest, "oldest"}, {Replacement::random, "random"}}};
static_assert(in_order(kReplacements));

// The reaction of adapters to packets that switches marked for congestion.
enum class CongestionControl : std::uint8_t { none, dcqcn };
inline constexpr EnumTable<CongestionControl, Word<CongestionControl>> kCongestionControls{
    {{CongestionControl::none, "none"}, {CongestionControl::dcqcn, "dcqcn"}}};
static_assert(in_order(kCongestionControls));

struct NicProfile {
  int pci_device_id;  // ibv_device_attr::vendor_part_id: programs know adapters by it
  int requester_units;
  Picos front_end;             // from the arrival of a doorbell or WQE until fetch or scheduling
  Picos doorbell_wqe;          // requester unit, per WQE fetched by DMA
  Picos blueflame_wqe;         // requester unit, per WQE that arrived by BlueFlame
  Picos wqe_block;             // requester unit, per 64-byte block of the WQE
  Picos gather;                // requester unit, per WQE whose payload it reads by DMA
  Picos next_packet;           // requester unit, per further packet of a message
  int responder_units;         // for all that arrives: requests of peers, and answers to own requests
  Picos handle_ack;            // responder unit, per acknowledgement
  Picos handle_response;       // responder unit, per packet of a response to a READ or an atomic
  Picos receive_packet;        // responder unit, per request packet
  Picos receive_dma;           // responder unit, per DMA of the packet (payload, CQE)
  Picos receive_line;          // responder unit, per cache line of a chunk of payload after the first
  Bytes receive_chunk;         // largest DMA of a responder unit
  Picos receive_inline;        // responder unit, per payload written into the place of its RECV (inline receive)
  Picos read_request;          // responder unit, per READ, in addition to a packet with one DMA
  Picos read_response;         // mean latency of a READ's response, in addition to the PCIe read of its data
  Picos atomic_packet;         // responder unit, per atomic, in addition to a packet with two DMAs
  Picos atomic_operation;      // time of an atomic's slot, in addition to its PCIe read
  std::uint64_t atomic_slots;  // a power of two
  int atomic_slot_lowest_bit;  // of the address: the slot number is the bits from this one upwards
  Picos transmit;              // latency from a unit to the port
  Bytes wqe_cache;             // for WQEs from arrival until they are sent
  Bytes sent_wqe_cache;        // for WQEs that wait for a response
  Replacement sent_wqe_replacement;
  Picos reread_wqe;                  // time of the unit that needs them, per read of evicted WQEs
  Bytes wqe_fetch_ahead;             // per requester unit: WQEs fetched by DMA and not yet processed
  Bytes qp_context;                  // requester's state of a QP, read on a miss
  Bytes qp_responder_context;        // responder's state of a QP
  Bytes qp_context_cache;            // for requesters' states
  Bytes qp_responder_context_cache;  // for responders' states; 0: they share qp_context_cache
  std::uint64_t near_qp_contexts;    // QPs whose states are near the units
  Picos far_qp_context;              // delay of another QP's state, at each use
  Picos qp_context_miss;             // time of a miss in addition to the PCIe read
  std::uint64_t qp_context_reads;    // misses that may be read at once
  Bytes translation_cache;
  Bytes input_buffer;  // per port: packets that have left the switch and are not yet processed
  int ack_coalescing;  // messages that one acknowledgement may cover while more wait
  CongestionControl congestion_control = CongestionControl::none;
  DcqcnParameters dcqcn{};  // without `line`
  // Firmware's interpretation of a QP's timeout: the minimum code, and a factor on its time.
  int ack_timeout_floor = 0;
  int ack_timeout_factor = 1;

  // Local ACK Timeout: 4.096 us * 2^code (InfiniBand Architecture Specification 1.3, volume 1, section 9.7.6.1.3).
  Picos ack_wait(int code) const {
    return Picos(4'096'000LL << (code < ack_timeout_floor ? ack_timeout_floor : code)) * ack_timeout_factor;
  }
};

// What a switch does when its packet buffer is full.
enum class FlowControl : std::uint8_t { credits, tail_drop, pfc };
inline constexpr EnumTable<FlowControl, Word<FlowControl>> kFlowControls{
    {{FlowControl::credits, "credits"}, {FlowControl::tail_drop, "none"}, {FlowControl::pfc, "pfc"}}};
static_assert(in_order(kFlowControls));

// An Ethernet switch and its uplinks. Sizes are per switch.
struct SwitchProfile {
  Bytes buffer{0};               // shared by packets of all ports
  double alpha = 1;              // limit of a queue relative to the free bytes (Choudhury and Hahne, ToN 1998)
  Bytes pfc_xoff{0};             // per port and priority: the sender pauses above this
  Bytes pfc_xon{0};              // and resumes below this
  Bytes ecn_min{0};              // K_min: queue length from which packets are marked
  Bytes ecn_max{0};              // K_max: queue length from which all packets are marked; 0: none are
  double ecn_probability = 0;    // P_max: share that is marked just below K_max
  std::uint32_t rack_nodes = 0;  // nodes per switch; 0: all
  std::uint32_t uplinks = 0;     // cables from each rack switch to the spine
  BytesPerSecond uplink_rate;    // of each
  std::uint32_t flow_paths = 1;  // cables that the packets of one flow take in turn
};

struct FabricProfile {
  Picos cable;  // one way, port to switch
  Picos switch_latency;
  double port_share;        // share of a port's data rate left to packets after flow control and idle symbols
  Bytes packet_gap;         // time for which the port is in use between packets, in bytes
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

// Throws Error with one line, which begins with `where`, for a key that is unknown, missing or of the wrong type, and
// for an impossible value.
Profile read_profile(const Json& json, const std::string& where);

// `name`: as for find_config("clusters", name).
Profile load_profile(const std::string& name);

// The number of nodes that can together receive more than one node sends, for any payload: the worst ratio of the unit
// capacities of a sender (header-only request) and a receiver (request with payload), at most kMaxReceivers.
inline constexpr int kMaxReceivers = 64;
int receivers_needed(const Profile& profile);

}  // namespace verbscope
