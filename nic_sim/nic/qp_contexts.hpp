// Caches of QP contexts in the NIC, one for requesters and responders together or one for each, and the DMA reads after
// misses. A profile limits the number of outstanding reads; further misses wait in line. So a miss costs its QP
// latency, and many misses limit the rate of all QPs. The contexts of recently used QPs are near the units; another
// context arrives later, without such a limit.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "common/units.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class QpContexts {
 public:
  QpContexts(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, std::uint64_t seed)
      : engine_(engine),
        bus_(bus),
        requesters_(profile.qp_context_cache, Replacement::random, seed),
        responders_(profile.qp_responder_context_cache, Replacement::random, seed ^ 1),
        separate_responders_(profile.qp_responder_context_cache.value > 0),
        shadow_requesters_(Bytes(2 * profile.qp_context_cache.value), Replacement::random, seed ^ 7),
        shadow_responders_(Bytes(2 * profile.qp_responder_context_cache.value), Replacement::random, seed ^ 8),
        near_(Bytes(profile.near_qp_contexts), Replacement::random, seed ^ 6),
        far_time_(profile.far_qp_context),
        counts_(counts),
        miss_time_(profile.qp_context_miss),
        reads_(profile.qp_context_reads) {
    for (std::size_t i = 0; i < reads_.size(); ++i) free_reads_.push_back(i);
  }
  QpContexts(const QpContexts&) = delete;
  QpContexts& operator=(const QpContexts&) = delete;

  // Delay until the context of `qp` can be used, if it is cached.
  Picos delay(SimQp& qp) { return far_time_ == Picos(0) || near_.use(qp.near_context) ? Picos(0) : far_time_; }

  // Returns true if the context is cached. Else `then` runs with `object` and `argument` when it is. Misses are served
  // in order, each by a read unless an earlier one has fetched the same context. Doorbells keep their order: the cached
  // context of a requester waits behind the misses in line.
  bool lookup(QpContext& context, Engine::Action then, void* object, std::uint64_t argument) {
    if (!context.shadow.place.cached()) [[unlikely]]
      insert_shadow(context);
    if (context.place.cached() && (context.of_responder || line_.empty())) [[likely]] {
      ++counts_.qp_context_hits;
      return true;
    }
    line_.push_back({&context, then, object, argument});
    begin_reads();
    return false;
  }

  void drop(QpContext& context) {
    cache_of(context).drop(context);
    shadow_of(context).drop(context.shadow);
  }
  void drop(NearContext& context) { near_.drop(context); }

  // Time for which reads have been outstanding so far, summed over reads.
  Picos reads_held() const {
    return reads_held_ + engine_.now() * static_cast<std::int64_t>(reads_.size() - free_reads_.size());
  }
  // The same, as it would be if no read had waited for tags or the link.
  Picos reads_held_idle() const { return reads_held_idle_; }

 private:
  struct Miss {
    QpContext* context;
    Engine::Action then;
    void* object;
    std::uint64_t argument;
  };

  static void read(void* contexts, std::uint64_t miss);
  static void available(void* contexts, std::uint64_t miss);
  Cache<QpContext>& cache_of(const QpContext& context) {
    return context.of_responder && separate_responders_ ? responders_ : requesters_;
  }
  Cache<QpContext::Shadow>& shadow_of(const QpContext& context) {
    return context.of_responder && separate_responders_ ? shadow_responders_ : shadow_requesters_;
  }
  void begin_reads();
  [[gnu::noinline]] void insert_shadow(QpContext& context) {
    shadow_of(context).insert(context.shadow);
    ++counts_.qp_context_misses_twice;
  }

  Engine& engine_;
  PcieBus& bus_;
  Cache<QpContext> requesters_;
  Cache<QpContext> responders_;
  bool separate_responders_;
  Cache<QpContext::Shadow> shadow_requesters_, shadow_responders_;
  Cache<NearContext> near_;
  Picos far_time_;
  NicCounts& counts_;
  Picos miss_time_;
  std::vector<Miss> reads_;  // one for each read that may be outstanding
  std::vector<std::uint64_t> free_reads_;
  Picos reads_held_{0};  // minus the start time of each outstanding read
  Picos reads_held_idle_{0};
  std::deque<Miss> line_;
};

}  // namespace verbscope::sim
