// QPs that stand in line for a unit. `side`: the member of a QP that has `queued` and `next_in_line` for it.
#pragma once

#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

template <auto side>
class QpLine {
 public:
  bool empty() const { return first_ == nullptr; }

  // `qp` is not in line.
  void push(SimQp& qp) {
    (qp.*side).queued = true;
    (qp.*side).next_in_line = nullptr;
    (first_ == nullptr ? first_ : (last_->*side).next_in_line) = &qp;
    last_ = &qp;
  }

  // There is one.
  SimQp& pop() {
    SimQp& qp = *first_;
    first_ = (qp.*side).next_in_line;
    (qp.*side).queued = false;
    return qp;
  }

 private:
  SimQp* first_ = nullptr;
  SimQp* last_ = nullptr;
};

}  // namespace verbscope::sim
