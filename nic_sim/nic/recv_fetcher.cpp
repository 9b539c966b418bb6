#include "nic_sim/nic/recv_fetcher.hpp"

#include <algorithm>

#include "nic_sim/nic/nic.hpp"

namespace verbscope::sim {

void RecvFetcher::fetch(SimQp& qp) {
  if (qp.srq != nullptr) return fetch(*qp.shared_queue());
  fetch(qp.recv, &recvs_fetched, &qp, qp.generation);
}

void RecvFetcher::fetch(SimSrq& srq) {
  fetch(srq.queue, &shared_recvs_fetched, &srq, 0);
}

// Aligned groups, so that a group is one DMA read; two groups ahead of use; less than a group only when there is
// nothing else at hand.
void RecvFetcher::fetch(RecvQueue& queue, Engine::Action fetched, void* owner, std::uint16_t generation) {
  const std::uint64_t group = std::min<std::uint64_t>(group_, queue.ring.size());
  while (queue.fetching < queue.posted && queue.fetching - queue.used < 2 * group) {
    const std::uint64_t rest = group - queue.fetching % group;
    const std::uint64_t count = std::min(rest, queue.posted - queue.fetching);
    if (count < rest && queue.fetching > queue.used) return;
    const std::uint64_t begin = queue.ring.place(queue.fetching) * queue.slot_bytes;
    queue.fetching += count;
    bus_.dma_read(begin, count * queue.slot_bytes, fetched, owner, with_generation(generation, count));
  }
}

void RecvFetcher::recvs_fetched(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state == IBV_QPS_ERR || qp.state == IBV_QPS_RESET || !of_this_generation(qp, argument)) return;
  qp.recv.fetched += without_generation(argument);
  qp.nic->responder().fetcher.units_.recvs_came(qp);
}

void RecvFetcher::shared_recvs_fetched(void* object, std::uint64_t argument) {
  SimSrq& srq = *static_cast<SimSrq*>(object);
  srq.queue.fetched += without_generation(argument);
  srq.nic->responder().fetcher.units_.recvs_came(srq);
}

}  // namespace verbscope::sim
