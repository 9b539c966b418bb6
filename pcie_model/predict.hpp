// The closed-form model: the PCIe cost of one operation in steady state, and the operations per second that each
// resource allows. It models the interface of driver and adapter (wire/), not the inside of an adapter.
// docs/pcie-model.md lists all rules and omissions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/pcie_events.hpp"
#include "common/units.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope {

// The posted operation, identical each time. The fields have the meaning of the benchmarks' options.
struct VerbShape {
  Verb verb = Verb::send;
  Transport transport = Transport::ud;
  Bytes payload{};           // 8 for atomics
  Bytes payload_offset{};    // distance of the payload's start from the previous multiple of RCB, on both sides
  bool header_only = false;  // SEND of an empty payload with a 4-byte immediate, on a QP only for that (no SGE)
  bool immediate = false;    // with a 4-byte immediate (header-only always has one); a WRITE then uses a RECV
  bool inlined = false;      // the payload is in the WQE; no effect on an empty payload
  Bytes max_inline_cap{};    // max_inline_data of the QP; at least the payload's size is used
  int post_list = 1;         // WQEs per ibv_post_send (predict_receiver: RECVs per ibv_post_recv)
  int post_step = 0;     // not 0: with lists of other lengths in between, lists begin at multiples of this many WQEs
  int begin_blocks = 0;  // not 0: with WQEs of other sizes in between, lists begin at multiples of this many blocks;
                         // post_step is unused
  int signal_every = 1;  // one CQE per this many operations
  int send_queue_depth = 128;
  int recv_queue_depth = 512;
  // The QP has inline receive: a payload that fits (inline_receive_room) arrives in the CQE without a write of its own,
  // or is written to the slot of its RECV. At the receiver this applies to a SEND, at the requester to the result of a
  // signaled READ or atomic.
  bool inline_recv = false;
  Bytes max_inline_recv{};          // the QP's room for it; at least the payload's size is used
  bool shared_recv_queue = false;   // RECVs are posted to a shared receive queue
  std::optional<int> ports_used{};  // absent: all ports of the cluster
  double events = 0;  // completion events per operation for which the program sleeps (with_completion_events)
};

// CPU writes per operation by the driver. Excludes payload preparation and polling.
struct CpuStores {
  double ring_bytes = 0;    // WQE bytes written into the queue in host memory
  double record_bytes = 0;  // doorbell record in host memory
  double mmio_bytes = 0;    // doorbells and write-combined lines
  double stores = 0;        // store instructions: one per 8 bytes, plus one per doorbell and per doorbell record

  // As PcieEvents::each.
  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("ring_bytes", self.ring_bytes);
    visit("record_bytes", self.record_bytes);
    visit("mmio_bytes", self.mmio_bytes);
    visit("stores", self.stores);
  }
};

// How the adapter receives the WQE.
enum class PostMethod {
  blueflame,        // the CPU writes the WQE to the adapter (WQE-by-MMIO)
  doorbell,         // the CPU rings the doorbell, the adapter reads the WQEs
  doorbell_record,  // RECV: the CPU updates a counter in host memory, the adapter reads the WQEs later
  none,             // no post: the passive side of WRITE, READ and atomics
};

// Highest rate that one resource allows. Names: "mmio", "dma_read", "pcie_to_nic", "pcie_to_host", "wire_out",
// "wire_in". A resource that the operation does not use has no bound.
struct RateBound {
  std::string resource;
  double mops = 0;
};

struct Prediction {
  ClusterWire wire;
  std::string role;  // "requester", "receiver" or "responder"
  VerbShape shape;
  Bytes wqe_bytes;    // segments and inline payload, as in Table 1 of Kalia et al., ATC 2016; 0 without a WQE
  int wqe_lines = 0;  // cache lines that the WQE covers in the queue
  PostMethod method = PostMethod::doorbell;
  PciePerOp pcie;
  CpuStores cpu;
  std::vector<RateBound> bounds;
  std::string binding;    // the resource with the smallest bound; the first one if several are equal
  double bound_mops = 0;  // the smallest bound
};

// Predicts for the side that posts SEND, WRITE, READ or an atomic. Throws Error for: a verb that the transport does not
// have; a payload over the inline limit, or over the MTU on UD; header-only with a payload or another verb; an
// immediate with a verb that takes none; inline receive that the adapter or transport does not support; a post list
// longer than the queue; a number out of range.
Prediction predict_requester(const ClusterWire& cluster, const VerbShape& shape);

// Number of RECVs that the adapter fetches at once: its own limit, or the number of slots in the queue.
std::uint64_t recv_group(const ClusterWire& cluster, const VerbShape& shape);

// Predicts for the receiver of the SENDs in `shape`. The verb may be send or recv, with the same meaning. Throws like
// predict_requester.
Prediction predict_receiver(const ClusterWire& cluster, const VerbShape& shape);

// Predicts for the machine whose memory the WRITEs, READs or atomics of `shape` access. Its CPU is idle, unless the
// WRITEs have an immediate: then it posts RECVs. Throws like predict_requester.
Prediction predict_responder(const ClusterWire& cluster, const VerbShape& shape);

// Costs of a number of WQEs, e.g. ten of 65 bytes, computed as in Appendix A and section 5.2.1 of Kalia et al., ATC
// 2016: each WQE is in a slot of whole cache lines, starting at an RCB-aligned address.
struct WqePrediction {
  std::string cluster;
  Bytes wqe_bytes;
  int wqes = 0;
  int lines_per_wqe = 0;
  Bytes mmio_bytes_to_nic;         // all WQEs as write-combined lines
  Bytes doorbell_bytes_to_nic;     // one doorbell and the completions of one DMA read
  double dma_read_mb_per_s = 0;    // useful bandwidth, with completions of RCB bytes
  double mmio_lines_per_us = 0;    // write-combined lines, millions per second
  double dma_read_limit_mops = 0;  // WQE rate at that bandwidth
  double mmio_limit_mops = 0;      // WQE rate at that line rate
};

// Throws Error if a WQE is empty or longer than 1024 bytes (16 blocks, the maximum), or if `wqes` is not from 1 to
// 32768.
WqePrediction predict_wqes(const ClusterWire& cluster, Bytes wqe_bytes, int wqes);

struct PredictedPart {
  Prediction prediction;
  double per_op = 1;  // how often the part occurs per operation
};

// Adds up events and stores. A resource serves the parts one after another, so their times add up: its bound is 1 /
// sum(per_op / bound). Cluster, shape, WQE and method are those of the first part. Throws Error if `parts` is empty or
// a `per_op` is negative.
Prediction predict_together(const std::string& role, const std::vector<PredictedPart>& parts);

// Returns `prediction` for a program that sleeps for `per_op` completion events per operation. For each event it arms
// its completion queue with a doorbell, and the adapter writes an event queue entry and an interrupt. Excludes the
// kernel's work for an event. Stores `per_op` in the shape.
Prediction with_completion_events(const Prediction& prediction, double per_op);

}  // namespace verbscope
