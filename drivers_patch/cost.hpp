// The cost of a request, a post or a completion, computed from wire/. Sums are integers, added transfer by transfer.
// Tests compare them with the model's closed forms and the simulator's packets.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/pcie_events.hpp"
#include "wire/pcie.hpp"
#include "wire/transport.hpp"
#include "wire/wqe.hpp"

namespace verbscope::driver {

inline constexpr std::size_t kOpcodes = 16;      // the values of ibv_wr_opcode, 0 to 15
inline constexpr std::size_t kSizeClasses = 33;  // 0: empty; k: from 2^(k-1) to 2^k - 1 bytes
inline constexpr std::size_t kListClasses =
    12;  // classes as in kSizeClasses, of lists and batches; the last one: all longer
inline constexpr std::size_t kStatuses = 24;     // the values of ibv_wc_status
inline constexpr std::size_t kTimeClasses = 40;  // classes as in kSizeClasses, of TSC ticks from post to completion

// PCIe events. `exact`: those that the driver determines. Those that the adapter determines are between `least` and
// `most`; never add the two.
struct PcieCost {
  PcieCounts exact;
  PcieCounts least;
  PcieCounts most;
};

struct SendTotals {
  std::uint64_t by_opcode[kOpcodes] = {};
  std::uint64_t bytes_by_opcode[kOpcodes] = {};
  std::uint64_t by_size[kSizeClasses] = {};
  std::uint64_t inlined = 0;
  std::uint64_t signaled = 0;
  std::uint64_t fenced = 0;
  std::uint64_t elements = 0;  // scatter/gather elements
  std::uint64_t payload_bytes = 0;
  std::uint64_t inline_bytes = 0;
  std::uint64_t wqe_bytes = 0;        // in units of 16 bytes
  std::uint64_t wqe_blocks = 0;       // of 64 bytes
  std::uint64_t alone = 0;            // requests that were posted as a list of one
  std::uint64_t blueflames = 0;       // those of `alone` that went by BlueFlame
  std::uint64_t doorbell_blocks = 0;  // WQE blocks that the adapter had to read
  PcieCost pcie;
};

struct ReceiveTotals {
  std::uint64_t completions = 0;
  std::uint64_t payload_bytes = 0;
  PcieCost pcie;
};

// into += weight * from, member by member. T must contain only std::uint64_t.
template <class T>
void add_scaled(T& into, const T& from, std::uint64_t weight) {
  static_assert(sizeof(T) % sizeof(std::uint64_t) == 0);
  auto* const to = reinterpret_cast<std::uint64_t*>(&into);
  const auto* const what = reinterpret_cast<const std::uint64_t*>(&from);
  for (std::size_t i = 0; i < sizeof(T) / sizeof(std::uint64_t); ++i) to[i] += weight * what[i];
}

// The adapter and its PCIe slot. `computed`: the device is of another family, and the costs are those that its requests
// would have on this one.
struct WireFacts {
  bool known = false;  // if false, requests are counted, but no WQEs and no PCIe
  NicFamily family = NicFamily::mlx5;
  bool computed = false;
  std::uint32_t recv_prefetch = 1;  // most RECV WQEs per DMA read
  PcieLink pcie{};
  Bytes blueflame_max{};
  Bytes doorbell{};
  Bytes cqe{};
};

// The facts of an adapter family in a PCIe 3.0 x8 slot with MPS 256, MRRS 512 and RCB 64. These are the usual values;
// reading a slot's own values needs privilege.
WireFacts usual_facts(NicFamily family, bool computed);

// Properties of a QP that its requests' costs depend on.
struct QpFacts {
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t mtu = 4096;      // payload bytes per packet
  std::uint32_t max_inline = 0;  // as the program requested, like the next two
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t reads_at_once = 0;      // READs and atomics that the connection allows; 0: unknown
  std::uint32_t doorbell_register = 0;  // number by wire/doorbell.hpp
  bool shared_register = false;
  bool signal_all = false;  // sq_sig_all
  bool adopted = false;     // its creation was not seen; the values above are from a query
};

// A request. `offset`: distance of a single element's payload from a multiple of RCB and cache line. `gather`: the
// elements if there are several and the payload is not inline.
struct Request {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;  // of ibv_send_flags
  std::uint32_t elements = 0;
  std::uint64_t length = 0;
  std::uint64_t offset = 0;
  bool alone = false;  // posted as a list of one
  std::span<const ibv_sge> gather{};
};

// Adds `weight` requests like this one, with the MMIO of BlueFlame writes. Transports and opcodes that wire/ does not
// have add to the counts, but not to WQEs and PCIe. Adds only the upper bound of WQE reads.
void add_request(const WireFacts& wire, const QpFacts& qp, const Request& request, std::uint64_t weight,
                 SendTotals& totals);
// Adds the MMIO of `lists` posted by doorbell, and the lower bound of WQE reads: one read per list, each WQE once.
void add_doorbells(const WireFacts& wire, std::uint64_t lists, std::uint64_t blocks, PcieCost& cost);
// Adds the MMIO that arms a completion queue.
void add_armings(const WireFacts& wire, std::uint64_t armings, PcieCost& cost);
// Adds CQEs that the adapter wrote.
void add_cqes(const WireFacts& wire, std::uint64_t cqes, PcieCost& cost);

// Adds reads of RECV WQEs of `stride` bytes. The adapter reads them singly or in groups: at least those of the
// `completed` RECVs, at most all `posted` ones.
void add_recvs(const WireFacts& wire, Bytes stride, std::uint64_t posted, std::uint64_t completed, PcieCost& cost);
// Adds RECVs that completed with `length` bytes each, at any address or inside the CQE. `in_memory` false: the RECV's
// buffer is unused, as for a WRITE with immediate.
void add_received(const WireFacts& wire, const QpFacts& qp, std::uint64_t length, bool in_memory, std::uint64_t weight,
                  ReceiveTotals& totals);

// The size of a RECV in its queue.
Bytes recv_stride_of(const QpFacts& qp);
Bytes shared_recv_stride(std::uint32_t max_sge);

// None if wire/ has no such verb.
std::optional<Verb> verb_of_opcode(ibv_wr_opcode opcode);
std::optional<Transport> transport_of_type(ibv_qp_type type);

}  // namespace verbscope::driver
