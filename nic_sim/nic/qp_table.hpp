// The QPs of a NIC by number.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

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
  SimQp& once_there(std::uint32_t number) const { return *all_[number - first_]; }

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

}  // namespace verbscope::sim
