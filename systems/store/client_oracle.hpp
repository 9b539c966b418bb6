// Draws the requests of a client thread of a store, and checks their results. Every store's client has one.
//
// A value is right if its bytes are those of its key and one version, and the version is the one before the run or
// names a PUT of this key. It must not be older than the client's own PUTs that were acknowledged before the GET was
// sent: neither an earlier PUT of its own, nor the value before the run, nor a version that the client had read under
// the key before it sent its PUT. This detects a PUT that a server executes again after others. An oracle remembers the
// last PUT in each of its places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/histogram.hpp"
#include "common/units.hpp"
#include "systems/store/workload.hpp"

namespace verbscope {

// One request, from its drawing to its end.
struct StoreRequest {
  std::uint64_t key = 0;
  std::uint64_t number = 0;  // of the client thread's operations
  bool put = false;
  Picos first{0};           // when it was sent first
  std::uint64_t acked = 0;  // GET: one more than the number of its client's last acknowledged PUT of the key; 0: none
  StoreVersion before;      // the version that the client had read before it sent its own (last) PUT
  bool remembered = false;  // the oracle has a place for the key
};

// Counts of the whole run, but for those called window_*, which are of the measured interval.
struct StoreCounts {
  std::uint64_t asked = 0;           // requests drawn
  std::uint64_t gets = 0, puts = 0;  // completed requests
  std::uint64_t misses = 0;          // GETs that found nothing
  std::uint64_t window_gets = 0, window_puts = 0, window_misses = 0;
  std::uint64_t retries = 0;      // requests sent again
  std::uint64_t surplus = 0;      // further responses to a request that had one
  std::uint64_t checked = 0;      // checked values
  std::uint64_t torn = 0;         // values that were of two versions
  std::uint64_t wrong = 0;        // values of no version of the key
  std::uint64_t stale = 0;        // values older than a PUT of the client that was acknowledged before
  std::uint64_t own_checked = 0;  // GETs of a key with such a PUT that the oracle remembered
};

class ClientOracle {
 public:
  // `client`: number of the thread among the `clients` of all machines; `places`: of PUTs to remember, a power of two.
  ClientOracle(const StoreWorkload& workload, const StoreValues& values, std::uint32_t client, std::uint32_t clients,
               std::uint64_t places)
      : workload_(&workload), values_(values), client_(client), clients_(clients), places_(places), mask_(places - 1) {}

  const StoreWorkload& workload() const { return *workload_; }
  const StoreValues& values() const { return values_; }
  std::uint32_t client() const { return client_; }

  // Draws the next request. Its time is set by ask().
  StoreRequest draw();
  // The request is sent now: notes which versions a GET may return, and the key of a PUT.
  void ask(StoreRequest& request, Picos now);
  // The bytes that a PUT writes.
  void fill(const StoreRequest& request, std::byte* value) const {
    values_.fill(value, request.key, StoreVersion(client_, request.number));
  }

  // How a request ended; `measured`: within the window.
  void hit(const StoreRequest& request, const std::byte* value, std::size_t length, Picos now, bool measured);
  // A GET from an emulated store, whose bytes have no meaning.
  void got_unchecked(const StoreRequest& request, Picos now, bool measured) { end_get(request, now, measured); }
  // An echoed request, which counts as a GET.
  void echoed(const StoreRequest& request, bool right, Picos now, bool measured) {
    end_get(request, now, measured);
    ++counts.checked;
    if (!right) ++counts.wrong;
  }
  void missed(const StoreRequest& request, Picos now, bool measured);
  void put_done(const StoreRequest& request, Picos now, bool measured);
  // A measured interval begins: discards the counts of an earlier one.
  void begin_interval();

  // Requests that are done.
  std::uint64_t done() const { return counts.gets + counts.puts; }

  StoreCounts counts;
  Histogram get_latency, put_latency;  // of the window; of GETs, those that found nothing too

 private:
  struct Place {
    std::uint64_t key = ~std::uint64_t{0};
    std::uint64_t acked = 0;
    StoreVersion seen{};  // last under the key, of another client
    StoreVersion before{};
  };
  Place& place_of(std::uint64_t key) { return places_[mix(key) & mask_]; }
  bool written(std::uint64_t key, StoreVersion version) const;
  bool before_acked(StoreVersion own, const StoreRequest& request) const;
  void end_get(const StoreRequest& request, Picos now, bool measured);

  const StoreWorkload* workload_;
  StoreValues values_;
  std::uint32_t client_;
  std::uint32_t clients_;
  std::vector<Place> places_;
  std::uint64_t mask_;
};

// Places of each oracle of a process with this many client threads.
std::uint64_t oracle_places(std::uint64_t keys, std::uint32_t client_threads);

}  // namespace verbscope
