#include "nic_sim/nic/recv_fetcher.hpp"

#include <algorithm>

namespace verbscope::sim {
namespace {

constexpr unsigned kAddressBits = 48;  // addresses of a program are shorter

}  // namespace

void RecvFetcher::fetch(SimQp& qp) {
  if (qp.srq != nullptr) return fetch(*qp.shared_queue());
  fetch(qp.recv, &recvs_fetched, QpWord::make(qp), QpWord::kGenerationBits);
}

void RecvFetcher::fetch(SimSrq& srq) {
  fetch(srq.queue, &shared_recvs_fetched, reinterpret_cast<std::uint64_t>(&srq), kAddressBits);
}

// The event says whose RECVs have come, and above bit `shift` how many. Aligned groups, so that a group is one DMA
// read; two groups ahead of use; less than a group only when there is nothing else at hand.
void RecvFetcher::fetch(RecvQueue& queue, Engine::Action fetched, std::uint64_t owner, unsigned shift) {
  const std::uint64_t group = std::min<std::uint64_t>(group_, queue.ring.size());
  while (queue.fetching < queue.posted && queue.fetching - queue.used < 2 * group) {
    const std::uint64_t rest = group - queue.fetching % group;
    const std::uint64_t count = std::min(rest, queue.posted - queue.fetching);
    if (count < rest && queue.fetching > queue.used) return;
    const std::uint64_t begin = queue.ring.place(queue.fetching) * queue.slot_bytes;
    queue.fetching += count;
    bus_.dma_read(begin, count * queue.slot_bytes, fetched, this, owner | count << shift);
  }
}

void RecvFetcher::recvs_fetched(void* object, std::uint64_t word) {
  RecvFetcher& self = *static_cast<RecvFetcher*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET) return;
  qp->recv.fetched += QpWord::count(word);
  self.units_.recvs_came(*qp);
}

void RecvFetcher::shared_recvs_fetched(void* object, std::uint64_t argument) {
  SimSrq& srq = *reinterpret_cast<SimSrq*>(argument & ((std::uint64_t{1} << kAddressBits) - 1));
  srq.queue.fetched += argument >> kAddressBits;
  static_cast<RecvFetcher*>(object)->units_.recvs_came(srq);
}

}  // namespace verbscope::sim
