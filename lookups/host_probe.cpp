#include "lookups/host_probe.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include "common/clock.hpp"
#include "common/mix.hpp"
#include "lookups/chain.hpp"
#include "lookups/variant.hpp"

namespace verbscope::lookups {

namespace {

constexpr std::size_t kAccesses = 1 << 15;  // per measurement
constexpr int kTimes = 9;
constexpr std::uint64_t kSmall = 4096;

// Walks over one chain. Every walk starts at a new place.
class Walks {
 public:
  explicit Walks(const Chain& chain) : chain_(chain) {}

  // Nanoseconds per access.
  double quickest(Variant variant, std::size_t batch) {
    const std::size_t count = std::max<std::size_t>(batch, kAccesses / chain_.depth());
    std::vector<std::uint32_t> starts(count), ends(count);
    double best = std::numeric_limits<double>::max();
    for (int i = 0; i < kTimes; ++i) {
      for (std::uint32_t& start : starts) start = static_cast<std::uint32_t>(mix(++used_) & (chain_.places() - 1));
      HostNode node;
      const Picos begin = TscClock::now();
      look_up(node, chain_, variant, batch, starts, ends.data());
      const Picos took = TscClock::now() - begin;
      kept_ = std::accumulate(ends.begin(), ends.end(), kept_);
      best = std::min(best, to_seconds(took) * 1e9 / static_cast<double>(count * chain_.depth()));
    }
    return best;
  }

 private:
  const Chain& chain_;
  std::uint64_t used_ = 0;
  volatile std::uint32_t kept_ = 0;  // prevents optimisation of the look-ups
};

}  // namespace

HostMemory probe_host(Bytes bytes, PageSize pages, std::size_t batch, double window) {
  HostMemory host;
  host.window = window;
  const Bytes size(std::bit_floor(std::max(bytes.value, kSmall)));
  {
    const Chain dependent(size, 512, 1, pages);
    Walks walks(dependent);
    host.latency_ns = walks.quickest(Variant::baseline, 1);
    host.parallel_ns = host.latency_ns;
    for (const std::size_t lanes : {8, 12, 16, 24, 32}) {
      host.parallel_ns = std::min(host.parallel_ns, walks.quickest(Variant::group, lanes));
    }
  }
  {
    const Chain independent(size, 1, 2, pages);
    host.parallel_ns = std::min(host.parallel_ns, Walks(independent).quickest(Variant::baseline, 1));
  }
  const Chain cached(Bytes(kSmall), 512, 3, PageSize::kb4);
  Walks walks(cached);
  host.cached_ns = walks.quickest(Variant::baseline, 1);
  host.stage_ns = walks.quickest(Variant::group, batch);
  host.switch_ns = walks.quickest(Variant::interleaved, batch);
  return host;
}

}  // namespace verbscope::lookups
