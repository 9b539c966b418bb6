// The closed-form model: what one operation costs on PCIe in steady state, and how many a second each resource allows.
// It knows the driver's and the adapter's interface (wire/), not the inside of an adapter: see
// docs/pcie-model.md for every rule, and for what it leaves out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/pcie_events.hpp"
#include "common/units.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope {

// The operation that is posted, the same each time. The fields have the meaning of the benchmarks' options.
struct VerbShape {
  Verb verb = Verb::send;
  Transport transport = Transport::ud;
  Bytes payload{};           // 8 for atomics
  Bytes payload_offset{};    // the payload begins so far behind a multiple of RCB, on either side of the wire
  bool header_only = false;  // SEND of no payload with a 4-byte immediate, on a QP made for nothing else (no SGE)
  bool immediate =
      false;             // SEND or WRITE with a 4-byte immediate (header-only has one anyhow); a WRITE then uses a RECV
  bool inlined = false;  // the payload travels in the WQE; without effect on an empty payload
  Bytes max_inline_cap{};  // max_inline_data of the QP; the payload's size is taken when that is larger
  int post_list = 1;       // WQEs per ibv_post_send (predict_receiver: RECVs per ibv_post_recv)
  int post_step = 0;     // with lists of other lengths between them, lists begin at multiples of so many WQEs; 0: alone
  int begin_blocks = 0;  // not 0: WQEs of other sizes stand between these, and lists begin at multiples of so many
                         // blocks; post_step is unused
  int signal_every = 1;  // one CQE per this many operations
  int send_queue_depth = 128;
  int recv_queue_depth = 512;
  // The QP was made with inline receive: what arrives and fits (inline_receive_room) comes in the CQE instead of a
  // write of its own, or is written into the place of its RECV. At the receiver a SEND, at the requester the result of
  // a signaled READ or atomic.
  bool inline_recv = false;
  Bytes max_inline_recv{};          // that the QP has room for; the payload's size is taken when that is larger
  bool shared_recv_queue = false;   // RECVs are posted to a shared receive queue
  std::optional<int> ports_used{};  // all ports of the cluster when absent
  double events = 0;  // completion events that the program sleeps for, of an operation: see with_completion_events
};

// The CPU writes this per operation for the driver's sake (payload preparation and polling are not the driver's).
struct CpuStores {
  double ring_bytes = 0;    // WQE bytes written into the queue in host memory
  double record_bytes = 0;  // doorbell record in host memory
  double mmio_bytes = 0;    // doorbells and write-combined lines
  double stores = 0;        // store instructions: 8 bytes each, one for a doorbell and one for a doorbell record
};

// The way in which the adapter gets the WQE.
enum class PostMethod {
  blueflame,        // the CPU writes the WQE to the adapter (WQE-by-MMIO)
  doorbell,         // the CPU rings, the adapter reads the WQEs
  doorbell_record,  // RECV: the CPU stores a counter in host memory, the adapter reads the WQEs when it wants
  none,             // nothing is posted here: the passive side of WRITE, READ and atomics
};

// The rate that one resource allows by itself. Names: "mmio", "dma_read", "pcie_to_nic", "pcie_to_host", "wire_out",
// "wire_in". A resource that the operation does not use has no bound.
struct RateBound {
  std::string resource;
  double mops = 0;
};

struct Prediction {
  ClusterWire wire;  // the cluster that was asked about
  std::string role;  // "requester", "receiver" or "responder"
  VerbShape shape;
  Bytes wqe_bytes;    // segments and inline payload, as in Table 1 of Kalia et al., ATC 2016; 0 without a WQE
  int wqe_lines = 0;  // cache lines that it covers in the queue
  PostMethod method = PostMethod::doorbell;
  PciePerOp pcie;
  CpuStores cpu;
  std::vector<RateBound> bounds;
  std::string binding;    // the resource with the smallest bound; the first of equals
  double bound_mops = 0;  // that bound
};

// Predicts for the side that posts SEND, WRITE, READ or an atomic. Throws Error: a verb that the transport does not
// have, a payload over the inline limit or over the MTU on UD, header-only with a payload or another verb, an immediate
// where there is none, inline receive where the adapter or the transport has none, a post list over the queue depth, a
// number out of range.
Prediction predict_requester(const ClusterWire& cluster, const VerbShape& shape);

// The number of RECVs that the adapter fetches at once: as many as it does, or as the queue has slots.
std::uint64_t recv_group(const ClusterWire& cluster, const VerbShape& shape);

// Predicts for the side that receives the SENDs of `shape`. The verb is send or recv, which mean the same here. Throws
// as predict_requester does.
Prediction predict_receiver(const ClusterWire& cluster, const VerbShape& shape);

// Predicts for the machine whose memory the WRITEs, READs or atomics of `shape` work on. Its CPU does nothing, unless
// the WRITEs carry an immediate: then it posts RECVs. Throws as predict_requester does.
Prediction predict_responder(const ClusterWire& cluster, const VerbShape& shape);

// Ten 65-byte WQEs and the like, as Appendix A and section 5.2.1 of Kalia et al., ATC 2016, reckon them: each WQE in a
// slot of whole cache lines, from an RCB-aligned address.
struct WqePrediction {
  std::string cluster;
  Bytes wqe_bytes;
  int wqes = 0;
  int lines_per_wqe = 0;
  Bytes mmio_bytes_to_nic;         // all WQEs as write-combined lines
  Bytes doorbell_bytes_to_nic;     // one doorbell and the completions of one DMA read
  double dma_read_mb_per_s = 0;    // useful bandwidth of completions of RCB bytes
  double mmio_lines_per_us = 0;    // write-combined lines, millions a second
  double dma_read_limit_mops = 0;  // WQEs at that bandwidth
  double mmio_limit_mops = 0;      // WQEs at that line rate
};

// Throws Error when a WQE is empty or over 1024 bytes (16 blocks, the largest) or `wqes` is not from 1 to 32768.
WqePrediction predict_wqes(const ClusterWire& cluster, Bytes wqe_bytes, int wqes);

}  // namespace verbscope
