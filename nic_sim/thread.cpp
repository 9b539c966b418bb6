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
               const Running running(*this);
               clock_ = engine_.now();
               body(*this);
             }),
      departures_(host.wc_buffers, Picos(0)) {}

void SimThread::sync() {
  slot_.current = nullptr;
  fiber_.wait_until(clock_);
  slot_.current = this;
}

void SimThread::note_empty(SimCq& cq, Picos cost) {
  if (std::find(cq.waiters.begin(), cq.waiters.end(), this) == cq.waiters.end()) cq.waiters.push_back(this);
  if (std::find(empty_queues_.begin(), empty_queues_.end(), &cq) != empty_queues_.end()) {
    empty_queues_.clear();  // a new pass: the one before had a result elsewhere
    pass_ = Picos(0);
  }
  empty_queues_.push_back(&cq);
  pass_ += cost;
}

void SimThread::relax() {
  Picos seen = Picos::max();
  for (SimCq* cq : empty_queues_) {
    if (cq->waiting() > 0) seen = std::min(seen, cq->at(cq->polled).visible);
  }
  slot_.current = nullptr;
  if (seen == Picos::max()) {
    if (!nudged_) fiber_.park();
    seen = engine_.now();
  }
  nudged_ = false;
  slot_.current = this;
  empty_queues_.clear();
  if (pass_.count() == 0) {
    stall_until(seen);
  } else if (seen > clock_) {
    clock_ += ((seen - clock_).count() - 1) / pass_.count() * pass_;
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
