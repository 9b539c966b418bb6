// Events inside a NIC: their handlers, their arguments, and the table that finds their QPs. The parts of a requester or
// responder schedule events, and Requester or Responder handles them.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// The object of an event is the part that handles it; its argument is a QP, a packet, or a QpWord.
inline SimQp& as_qp(std::uint64_t argument) {
  return *reinterpret_cast<SimQp*>(argument);
}
inline std::uint64_t as_argument(SimQp& qp) {
  return reinterpret_cast<std::uint64_t>(&qp);
}

// A QP's number, the generation for which an event was scheduled, and the low bits of a count, e.g. the number of a
// WQE. QpTable::current returns the QP, and SendQueue::whole the whole count.
struct QpWord {
  static constexpr unsigned kGenerationBits = 16, kCountBits = 24;
  static std::uint64_t make(std::uint32_t number, std::uint16_t generation, std::uint64_t count = 0) {
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kCountBits) - 1;
    return std::uint64_t{number} << (kGenerationBits + kCountBits) | (count & kMask) << kGenerationBits | generation;
  }
  static std::uint64_t make(const SimQp& qp, std::uint64_t count = 0) { return make(qp.qp_num, qp.generation, count); }
  static std::uint32_t number(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> (kGenerationBits + kCountBits));
  }
  static std::uint16_t generation(std::uint64_t word) { return static_cast<std::uint16_t>(word); }
  static std::uint32_t count(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> kGenerationBits & ((1u << kCountBits) - 1));
  }
};

// A value that is valid only while its QP has the generation in which the value was made.
inline std::uint64_t with_generation(std::uint16_t generation, std::uint64_t value) {
  return value << 16 | generation;
}
inline bool of_this_generation(const SimQp& qp, std::uint64_t argument) {
  return static_cast<std::uint16_t>(argument) == qp.generation;
}
inline std::uint64_t without_generation(std::uint64_t argument) {
  return argument >> 16;
}

// The QPs of a NIC by number.
class QpTable {
 public:
  // `first`: the number of the first QP.
  explicit QpTable(std::uint32_t first) : first_(first) {}

  // Returns the number of the new QP. Numbers are not reused.
  std::uint32_t add(SimQp& qp) {
    qps_.push_back(&qp);
    all_.push_back(&qp);
    return first_ + static_cast<std::uint32_t>(qps_.size() - 1);
  }
  void remove(const SimQp& qp) { qps_[qp.qp_num - first_] = nullptr; }

  // The QP with this number; null if there is none.
  SimQp* find(std::uint32_t number) const {
    const std::uint32_t index = number - first_;
    return index < qps_.size() ? qps_[index] : nullptr;
  }

  // The QP with this number, even if it was destroyed: its packets may still be in the NIC.
  SimQp& find_any(std::uint32_t number) const { return *all_[number - first_]; }

  // The QP of a QpWord; null if it was destroyed, or reset since the word was made.
  SimQp* current(std::uint64_t word) const {
    SimQp* qp = find(QpWord::number(word));
    return qp != nullptr && qp->generation == QpWord::generation(word) ? qp : nullptr;
  }

  // Calls `visit` with each QP in the order of creation; null for one that was destroyed.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const SimQp* qp : qps_) visit(qp);
  }

 private:
  std::uint32_t first_;
  std::vector<SimQp*> qps_;
  std::vector<SimQp*> all_;
};

// The shared receive queues of a NIC by number.
class SrqTable {
 public:
  void add(SimSrq& srq) {
    srqs_.push_back(&srq);
    srq.number = static_cast<std::uint32_t>(srqs_.size());
  }
  void remove(const SimSrq& srq) { srqs_[srq.number - 1] = nullptr; }

  // Null if there is none.
  SimSrq* find(std::uint32_t number) const { return number - 1 < srqs_.size() ? srqs_[number - 1] : nullptr; }

 private:
  std::vector<SimSrq*> srqs_;
};

// Events in the life of send WQEs, handled by Requester.
struct SendEvents {
  void* requester;  // the object of each event

  // Argument: a QpWord. Its count is
  Engine::Action wqes_fetched;            // the batch's first WQE: a DMA read of WQEs has completed
  Engine::Action wqes_reread;             // a run of WQEs, packed by WqeFetcher: they were read again after a miss
  Engine::Action sent;                    // the WQE whose last packet has left the port (UC, UD)
  Engine::Action wqe_read_for_answer;     // the WQE that a response needs: it was read again after a miss
  Engine::Action wqe_handled_for_answer;  // the same WQE: a unit has processed it
  Engine::Action rnr_wait_over;           // the number of the RNR wait that ends
  Engine::Action retry_due;               // 0: the retransmission timer has expired

  Engine::Action payload_read;  // argument: the packet whose payload, or a piece of it, was read
  Engine::Action rate_allows;   // argument: the QP, which may send again
};

// Events in the life of arrived packets, handled by Responder.
struct ReceiveEvents {
  void* responder;  // the object of each event

  Engine::Action context_near;          // argument: the packet, which joins the line of its QP
  Engine::Action unit_free;             // argument: the number of the unit, whose posted writes have credits again
  Engine::Action read_done;             // argument: the QP, for whose first packet a context or translations were read
  Engine::Action answer_processed;      // argument: the QP, whose unit has processed the answer in front
  Engine::Action service_done;          // argument: the QP, whose unit has processed the request in front
  Engine::Action recvs_fetched;         // argument: a QpWord; its count is the number of RECVs
  Engine::Action shared_recvs_fetched;  // argument: a shared queue and a number of RECVs, packed by RecvFetcher
  Engine::Action atomic_done;           // argument: the packet that answers the atomic
};

}  // namespace verbscope::sim
