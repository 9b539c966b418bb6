// The account of received values, and the state of a client thread, for all designs.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/hash.hpp"
#include "common/histogram.hpp"
#include "systems/requests/client.hpp"

namespace verbscope {

// The exact account of the received values of a sequence: one bit per value, set once. It refuses a value that was
// received before or lies before the first. The threads of a process share one; those of several processes are merged.
class ValueAudit {
 public:
  // Most values of a run: 35 s at 122 Mops. Memory is used where values were received, at most 512 MB.
  static constexpr std::uint64_t kCapacity = std::uint64_t{1} << 32;

  // Audits the values from `first` on. Throws Error if the memory cannot be mapped.
  explicit ValueAudit(std::uint64_t first);
  ValueAudit(const ValueAudit&) = delete;
  ValueAudit& operator=(const ValueAudit&) = delete;
  ~ValueAudit();

  // False when the value was noted before, or lies outside. Any thread; allocates nothing.
  bool note(std::uint64_t value) {
    const std::uint64_t offset = value - first_;
    if (offset >= kCapacity) [[unlikely]]
      return false;
    const std::uint64_t bit = std::uint64_t{1} << offset % 64;
    return (std::atomic_ref(words_[offset / 64]).fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

  // After the run: how many of the first `values` values were noted.
  std::uint64_t noted(std::uint64_t values) const;

  // The first `values` bits as hexadecimal digits, four values each.
  std::string pack(std::uint64_t values) const;
  // Notes what another process noted and packed, and returns how many of those values were noted here as well. Throws
  // Error with `where` on other text.
  std::uint64_t merge(const std::string& packed, const std::string& where);

  std::uint64_t first() const { return first_; }

 private:
  std::uint64_t first_;
  std::uint64_t* words_ = nullptr;
};

// The fingerprint of a set of values is the sum of mix() over them: sets that differ have the same with a chance of
// 2^-64.
std::uint64_t fingerprint_of_range(std::uint64_t first, std::uint64_t count);

// A request for a value.
struct Asked : RequestSlot {
  Picos first{0};           // when it was sent first
  std::uint64_t floor = 0;  // its value is at least this: above all values that its client had then
};

// Counts of the values that a thread received, or of all threads.
struct ReceiptCounts {
  std::uint64_t asked = 0;        // requests
  std::uint64_t answers = 0;      // one per completed request
  std::uint64_t surplus = 0;      // further answers
  std::uint64_t retries = 0;      // requests sent again
  std::uint64_t repeated = 0;     // values that a client had received before, or that were never handed out
  std::uint64_t disordered = 0;   // values below one that their client had when it sent the request
  std::uint64_t fingerprint = 0;  // sum of mix() over all values

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("asked", self.asked);
    visit("answers", self.answers);
    visit("surplus", self.surplus);
    visit("retries", self.retries);
    visit("repeated", self.repeated);
    visit("disordered", self.disordered);
    visit("fingerprint", self.fingerprint);
  }
};

// The values that one thread received.
struct Receipts : ReceiptCounts {
  explicit Receipts(ValueAudit& values) : audit(&values), next(values.first()) {}

  // A request is sent now.
  void ask(Asked& request, Picos now) {
    ++asked;
    request.first = now;
    request.floor = next;
  }
  // A response to a request. Its value is above all that the client had when it sent the request, and no client has
  // received it before.
  void take(std::uint64_t value, const Asked& request, Picos now, bool measured) {
    if (value < request.floor) [[unlikely]]
      ++disordered;
    keep(value);
    ++answers;
    if (measured) latency.record(now - request.first);
  }
  // A further response to a request, which was resent too early.
  void take_surplus(std::uint64_t value) {
    keep(value);
    ++surplus;
  }

  std::uint64_t received() const { return answers + surplus; }

  ValueAudit* audit;
  Histogram latency;
  std::uint64_t next;  // one more than the largest value so far

 private:
  void keep(std::uint64_t value) {
    if (!audit->note(value)) [[unlikely]]
      ++repeated;
    fingerprint += mix(value);
    next = std::max(next, value + 1);
  }
};

struct ClientState : RequestClientState {
  Receipts receipts;

  std::uint64_t done() const { return receipts.answers; }
  void begin_interval() {
    if (receipts.latency.count() > 0) receipts.latency.clear();
  }
};

}  // namespace verbscope
