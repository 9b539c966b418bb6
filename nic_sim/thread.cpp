#include "nic_sim/thread.hpp"

#include <algorithm>

#include "nic_sim/objects.hpp"

namespace verbscope::sim {

SimThread::SimThread(Engine& engine, ThreadSlot& slot, const HostProfile& host, int core,
                     std::function<void(SimThread&)> body)
    : engine_(engine),
      slot_(slot),
      core_(core),
      fiber_(engine,
             [this, body = std::move(body)] {
               slot_.current = this;
               clock_ = engine_.now();
               body(*this);
               slot_.current = nullptr;
             }),
      departures_(host.wc_buffers, Picos(0)) {}

void SimThread::sync() {
  slot_.current = nullptr;
  fiber_.wait_until(clock_);
  slot_.current = this;
}

void SimThread::note_empty(SimCq& cq, Picos cost) {
  pass_ += cost;
  cq.waiter = this;
  if (std::find(empty_queues_.begin(), empty_queues_.end(), &cq) == empty_queues_.end()) empty_queues_.push_back(&cq);
}

void SimThread::relax() {
  Picos seen = Picos::max();
  for (SimCq* cq : empty_queues_) {
    if (cq->waiting() > 0) seen = std::min(seen, cq->at(cq->polled).visible);
  }
  slot_.current = nullptr;
  if (seen == Picos::max()) {
    fiber_.park();
    seen = engine_.now();
  }
  slot_.current = this;
  empty_queues_.clear();
  if (seen > clock_) {
    const std::int64_t pass = std::max<std::int64_t>(pass_.count(), 1000);
    const std::int64_t behind = (seen - clock_).count();
    clock_ += Picos((behind + pass - 1) / pass * pass);
  }
  pass_ = Picos(0);
}

Picos SimThread::buffer_free_for(std::uint64_t lines) const {
  const std::size_t buffers = departures_.size();
  if (lines >= buffers) return departures_[(next_departure_ + buffers - 1) % buffers];
  return departures_[(next_departure_ + lines - 1) % buffers];
}

void SimThread::line_departs(Picos when) {
  departures_[next_departure_] = when;
  next_departure_ = (next_departure_ + 1) % departures_.size();
}

}  // namespace verbscope::sim
