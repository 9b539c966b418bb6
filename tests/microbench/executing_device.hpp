// A device made for tests of data paths: it executes what is posted, at once, on the memory that the requests name, and
// completes it in order. What the peer does is the test's: `after` runs behind each request.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

namespace verbscope::test {

class ExecutingDevice {
 public:
  ExecutingDevice() {
    context_.ops.post_send = post_send;
    context_.ops.post_recv = post_recv;
    context_.ops.poll_cq = poll_cq;
    cq_.context = &context_;
    cq_.cq_context = this;
  }
  ExecutingDevice(const ExecutingDevice&) = delete;
  ExecutingDevice& operator=(const ExecutingDevice&) = delete;

  ibv_qp* add_qp() {
    ibv_qp& qp = qps_.emplace_back();
    qp.context = &context_;
    qp.qp_context = this;
    qp.send_cq = &cq_;
    return &qp;
  }
  ibv_cq* cq() { return &cq_; }

  // The test's say in things.
  std::function<void(const ibv_send_wr&)> after = [](const ibv_send_wr&) {};
  std::function<void(ibv_wc&)> edit = [](ibv_wc&) {};
  bool hold_completions = false;

  // The books.
  std::vector<ibv_send_wr> requests;  // as posted, without their lists
  std::deque<ibv_recv_wr> recvs;      // that wait for a message
  std::size_t most_waiting = 0;       // completions that waited at once

  // A message for the RECV at the front.
  void deliver(const void* bytes, std::uint32_t length) {
    const ibv_recv_wr recv = recvs.front();
    recvs.pop_front();
    if (length > 0) std::memcpy(pointer(recv.sg_list->addr), bytes, length);
    ibv_wc wc{};
    wc.wr_id = recv.wr_id;
    wc.byte_len = length;
    wc.opcode = IBV_WC_RECV;
    pending_.push_back(wc);
  }

 private:
  static void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

  static void execute(const ibv_send_wr& wr) {
    const ibv_sge none{};
    const ibv_sge& local = wr.num_sge > 0 ? *wr.sg_list : none;
    if (wr.opcode == IBV_WR_RDMA_WRITE) {
      std::memcpy(pointer(wr.wr.rdma.remote_addr), pointer(local.addr), local.length);
    } else if (wr.opcode == IBV_WR_RDMA_READ) {
      std::memcpy(pointer(local.addr), pointer(wr.wr.rdma.remote_addr), local.length);
    } else if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      auto& word = *static_cast<std::uint64_t*>(pointer(wr.wr.atomic.remote_addr));
      *static_cast<std::uint64_t*>(pointer(local.addr)) = word;
      if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        word += wr.wr.atomic.compare_add;
      } else if (word == wr.wr.atomic.compare_add) {
        word = wr.wr.atomic.swap;
      }
    }
  }

  static int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
    auto& self = *static_cast<ExecutingDevice*>(qp->qp_context);
    for (; wr != nullptr; wr = wr->next) {
      execute(*wr);
      self.requests.push_back(*wr);
      if ((wr->send_flags & IBV_SEND_SIGNALED) != 0) {
        ibv_wc wc{};
        wc.wr_id = wr->wr_id;
        self.pending_.push_back(wc);
        self.most_waiting = std::max(self.most_waiting, self.pending_.size());
      }
      self.after(*wr);
    }
    return 0;
  }

  static int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
    for (; wr != nullptr; wr = wr->next) static_cast<ExecutingDevice*>(qp->qp_context)->recvs.push_back(*wr);
    return 0;
  }

  static int poll_cq(ibv_cq* cq, int entries, ibv_wc* wcs) {
    auto& self = *static_cast<ExecutingDevice*>(cq->cq_context);
    int count = 0;
    while (!self.hold_completions && count < entries && !self.pending_.empty()) {
      wcs[count] = self.pending_.front();
      self.edit(wcs[count++]);
      self.pending_.pop_front();
    }
    return count;
  }

  ibv_context context_{};
  ibv_cq cq_{};
  std::deque<ibv_qp> qps_;
  std::deque<ibv_wc> pending_;
};

}  // namespace verbscope::test
