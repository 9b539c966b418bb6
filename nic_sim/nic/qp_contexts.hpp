// The NIC's cache of the states of QPs.
#pragma once

#include <cstdint>

#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/profile/profile.hpp"
#include "wire/pcie.hpp"

namespace verbscope::sim {

class QpContexts {
 public:
  QpContexts(const NicProfile& profile, NicCounts& counts, std::uint64_t seed)
      : cache_(profile.qp_context_cache, seed), counts_(counts) {}

  // Whether the state is in the cache; if not it will be, once the caller has read it.
  bool at_hand(QpContext& context) {
    if (cache_.use(context)) {
      ++counts_.qp_context_hits;
      return true;
    }
    ++counts_.qp_context_misses;
    counts_.qp_context_read_lines += divide_up(context.bytes, kCacheLine.value);
    return false;
  }
  void drop(QpContext& context) { cache_.drop(context); }

 private:
  Cache<QpContext> cache_;
  NicCounts& counts_;
};

}  // namespace verbscope::sim
