// Fetches RECVs ahead of use, from the queues of QPs and from shared ones.
#pragma once

#include <cstdint>

#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/receiving_units.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class RecvFetcher {
 public:
  // `group`: as many RECVs as one DMA read fetches. `units` are told of RECVs that have come.
  RecvFetcher(PcieBus& bus, const QpTable& qps, std::uint64_t group, ReceivingUnits& units)
      : bus_(bus), qps_(qps), group_(group), units_(units) {}
  RecvFetcher(const RecvFetcher&) = delete;
  RecvFetcher& operator=(const RecvFetcher&) = delete;

  // RECVs were posted, or used: asks for more if there are fewer than two groups ahead.
  void fetch(SimQp& qp);
  void fetch(SimSrq& srq);

 private:
  static void recvs_fetched(void* fetcher, std::uint64_t word);
  static void shared_recvs_fetched(void* fetcher, std::uint64_t srq_and_count);
  void fetch(RecvQueue& queue, Engine::Action fetched, std::uint64_t owner, unsigned shift);

  PcieBus& bus_;
  const QpTable& qps_;
  std::uint64_t group_;
  ReceivingUnits& units_;
};

}  // namespace verbscope::sim
