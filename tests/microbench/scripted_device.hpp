// A device for tests of the data path: it counts posts, and completes requests when and how the test says.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "common/units.hpp"

namespace verbscope::test {

class ScriptedDevice {
 public:
  ScriptedDevice() {
    context_.ops.post_send = post_send;
    context_.ops.post_recv = post_recv;
    context_.ops.poll_cq = poll_cq;
    context_.ops.post_srq_recv = post_srq_recv;
    context_.ops.req_notify_cq = req_notify_cq;
    cq_.context = &context_;
    cq_.cq_context = this;
  }
  ScriptedDevice(const ScriptedDevice&) = delete;
  ScriptedDevice& operator=(const ScriptedDevice&) = delete;

  ibv_qp* add_qp(std::uint32_t depth) {
    ibv_qp& qp = qps_.emplace_back();
    qp.context = &context_;
    qp.qp_context = this;
    qp.send_cq = &cq_;
    qp.qp_num = static_cast<std::uint32_t>(qps_.size());
    depth_[&qp] = depth;
    return &qp;
  }
  ibv_cq* cq() { return &cq_; }
  // A completion queue for what is posted to `qp` from now on.
  ibv_cq* add_cq(ibv_qp* qp) {
    ibv_cq& cq = cqs_.emplace_back(cq_);
    cq_of_[qp] = &cq;
    qp->send_cq = &cq;
    return &cq;
  }
  ibv_srq* srq() {
    srq_.context = &context_;
    srq_.srq_context = this;
    return &srq_;
  }

  // The test's say in things.
  int completions_per_poll = 1 << 20;
  std::function<void(ibv_wc&)> edit = [](ibv_wc&) {};                             // each completion passes here
  std::function<bool(const ibv_qp*)> held = [](const ibv_qp*) { return false; };  // its completions do not come yet
  int fail_post_after = -1;                                                       // lists; then ENOMEM

  // The books.
  std::vector<std::uint32_t> posts;         // queue (wr_id) of each list, in order
  std::vector<std::uint32_t> list_lengths;  // requests in each
  std::uint64_t requests = 0;
  bool overflowed = false;             // more outstanding than a queue holds
  std::deque<std::uint64_t> recv_ids;  // wr_id of each RECV that waits for a message
  int polls = 0;
  int srq_posts = 0;  // lists
  int armed = 0;      // times that an event was asked for

  // A message for the RECV at the front.
  void deliver(std::uint32_t length) {
    ibv_wc wc{};
    wc.wr_id = recv_ids.front();
    wc.byte_len = length;
    recv_ids.pop_front();
    pending_.push_back({wc, nullptr, 0});
  }

 private:
  struct Pending {
    ibv_wc wc;
    ibv_qp* qp;
    std::uint32_t retires;
  };

  static ScriptedDevice& of(ibv_qp* qp) { return *static_cast<ScriptedDevice*>(qp->qp_context); }

  static int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
    ScriptedDevice& self = of(qp);
    if (self.fail_post_after >= 0 && std::cmp_equal(self.posts.size(), self.fail_post_after)) return ENOMEM;
    self.posts.push_back(static_cast<std::uint32_t>(wr->wr_id));
    std::uint32_t length = 0;
    for (; wr != nullptr; wr = wr->next) {
      ++length;
      ++self.unsignaled_[qp];
      if ((wr->send_flags & IBV_SEND_SIGNALED) != 0) {
        ibv_wc wc{};
        wc.wr_id = wr->wr_id;
        self.pending_.push_back({wc, qp, self.unsignaled_[qp]});
        self.unsignaled_[qp] = 0;
      }
    }
    self.list_lengths.push_back(length);
    self.requests += length;
    self.outstanding_[qp] += length;
    self.overflowed = self.overflowed || self.outstanding_[qp] > self.depth_[qp];
    return 0;
  }

  static int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
    ScriptedDevice& self = of(qp);
    for (; wr != nullptr; wr = wr->next) self.recv_ids.push_back(wr->wr_id);
    self.overflowed = self.overflowed || self.recv_ids.size() > self.depth_[qp];
    return 0;
  }

  static int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr**) {
    auto& self = *static_cast<ScriptedDevice*>(srq->srq_context);
    for (; wr != nullptr; wr = wr->next) self.recv_ids.push_back(wr->wr_id);
    ++self.srq_posts;
    return 0;
  }

  static int req_notify_cq(ibv_cq* cq, int) {
    ++static_cast<ScriptedDevice*>(cq->cq_context)->armed;
    return 0;
  }

  static int poll_cq(ibv_cq* cq, int entries, ibv_wc* wcs) {
    auto& self = *static_cast<ScriptedDevice*>(cq->cq_context);
    ++self.polls;
    int count = 0;
    for (std::size_t next = 0; next < self.pending_.size();) {
      if (count == std::min(entries, self.completions_per_poll)) break;
      const Pending pending = self.pending_[next];
      if (self.held(pending.qp) || self.queue_of(pending.qp) != cq) {
        ++next;
        continue;
      }
      self.pending_.erase(self.pending_.begin() + static_cast<std::ptrdiff_t>(next));
      if (pending.qp != nullptr) self.outstanding_[pending.qp] -= pending.retires;
      wcs[count] = pending.wc;
      self.edit(wcs[count++]);  // which may let more complete
    }
    return count;
  }

  ibv_cq* queue_of(ibv_qp* qp) {
    const auto own = cq_of_.find(qp);
    return own == cq_of_.end() ? &cq_ : own->second;
  }

  ibv_context context_{};
  ibv_cq cq_{};
  ibv_srq srq_{};
  std::deque<ibv_qp> qps_;
  std::deque<ibv_cq> cqs_;
  std::map<ibv_qp*, ibv_cq*> cq_of_;
  std::map<ibv_qp*, std::uint32_t> depth_, outstanding_, unsignaled_;
  std::deque<Pending> pending_;
};

// A clock that moves by itself, and an action when the thread finds nothing to do.
struct ScriptedNode {
  std::int64_t time = 0;
  std::function<void()> on_idle = [] {};
  std::function<void()> on_poll_memory = [] {};

  Picos now() { return Picos(time += 1000); }
  void idle() { on_idle(); }
  void idle_until(Picos) { on_idle(); }
  void compute(Nanos) {}
  void watch(const void*, std::size_t) {}
  void poll_memory(std::size_t = 1) { on_poll_memory(); }
  void prefetch(const void*) {}
  void load(const void*) {}
  std::uint64_t fetch_add(std::uint64_t& word, std::uint64_t amount) { return std::exchange(word, word + amount); }
  ibv_cq* await_event(ibv_comp_channel*, Nanos) {
    ++sleeps;
    on_idle();
    return cq;
  }

  int sleeps = 0;
  ibv_cq* cq = nullptr;  // what a sleep yields
};

}  // namespace verbscope::test
