// What a request, a post or a completion costs, from the facts of wire/. The sums are integers, made one transfer at a
// time: a third reckoning beside the model's closed forms and the simulator's packets, against which tests hold it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>

#include "drivers_patch/totals.hpp"
#include "wire/pcie.hpp"
#include "wire/transport.hpp"
#include "wire/wqe.hpp"

namespace verbscope::driver {

// The adapter and its slot that costs are reckoned for. `computed`: the device is of another kind, and the costs are
// those that its requests would have on this one.
struct WireFacts {
  bool known = false;  // the family is; otherwise requests are counted, and no WQEs and no PCIe
  NicFamily family = NicFamily::mlx5;
  bool computed = false;
  std::uint32_t recv_prefetch = 1;  // most RECV WQEs that one DMA read fetches
  PcieLink pcie{};
  Bytes blueflame_max{};
  Bytes doorbell{};
  Bytes cqe{};
};

// The facts of a family of adapters in a slot of PCIe 3.0 x8 with MPS 256, MRRS 512 and RCB 64: the usual values, which
// nobody without privilege can read of a slot.
WireFacts usual_facts(NicFamily family, bool computed);

// What of a QP bears on the costs of its requests.
struct QpFacts {
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t mtu = 4096;      // bytes of payload of one packet
  std::uint32_t max_inline = 0;  // capabilities that the program asked for
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t reads_at_once = 0;      // READs and atomics that the connection allows; 0: not told
  std::uint32_t doorbell_register = 0;  // by wire/doorbell_registers.hpp
  bool shared_register = false;
  bool signal_all = false;  // sq_sig_all
  bool adopted = false;     // its creation was not seen: what is above is what a query said
};

// A request. The payload of one element lies `offset` bytes behind a multiple of RCB and cache line; several elements
// are in `gather`, unless the payload is inline.
struct Request {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;  // of ibv_send_flags
  std::uint32_t elements = 0;
  std::uint64_t length = 0;
  std::uint64_t offset = 0;
  bool alone = false;  // posted as a list of one
  std::span<const ibv_sge> gather{};
};

// Adds `weight` requests like this, with the MMIO of those that go by BlueFlame. A transport or an opcode that wire/
// does not know adds to the counts, but not to WQEs and PCIe. Of reads of WQEs only the most are added here.
void add_request(const WireFacts& wire, const QpFacts& qp, const Request& request, std::uint64_t weight,
                 SendTotals& totals);
// The MMIO of `lists` that were posted by doorbell, and the least that the adapter reads for them: each list by one
// read, each WQE once.
void add_doorbells(const WireFacts& wire, std::uint64_t lists, std::uint64_t blocks, PcieCost& cost);
// The MMIO that arms a completion queue.
void add_armings(const WireFacts& wire, std::uint64_t armings, PcieCost& cost);
// CQEs that the adapter wrote.
void add_cqes(const WireFacts& wire, std::uint64_t cqes, PcieCost& cost);

// The adapter reads the WQEs of RECVs one by one or in groups, at least of those that `completed`, at most of all that
// were `posted`, `stride` bytes each.
void add_recvs(const WireFacts& wire, Bytes stride, std::uint64_t posted, std::uint64_t completed, PcieCost& cost);
// RECVs that completed with `length` bytes each, which lie wherever the buffers are, or in the CQE, as a RECV with an
// immediate of a WRITE has none (`in_memory` false).
void add_received(const WireFacts& wire, const QpFacts& qp, std::uint64_t length, bool in_memory, std::uint64_t weight,
                  ReceiveTotals& totals);

// The size of a RECV's place in its queue.
Bytes recv_stride_of(const QpFacts& qp);
Bytes shared_recv_stride(std::uint32_t max_sge);

// The verb of an opcode, none where wire/ has none.
std::optional<Verb> verb_of_opcode(ibv_wr_opcode opcode);
std::optional<Transport> transport_of_type(ibv_qp_type type);

}  // namespace verbscope::driver
