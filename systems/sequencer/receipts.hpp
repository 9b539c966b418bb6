// The clients of all designs have these in common: the account of the values that a thread received, and the state of
// the loop that asks for them (systems/rpc/client.hpp).
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/histogram.hpp"
#include "common/mix.hpp"
#include "systems/rpc/client.hpp"
#include "systems/sequencer/value_audit.hpp"

namespace verbscope {

// A request for a value.
struct Asked : RequestSlot {
  Picos first{0};           // when it was asked
  std::uint64_t floor = 0;  // its value is at least this: above all that its client had then
};

// The values that one thread received.
struct Receipts {
  explicit Receipts(ValueAudit& values) : audit(&values), next(values.first()) {}

  // A request is being asked, now.
  void ask(Asked& request, Picos now) {
    ++asked;
    request.first = now;
    request.floor = next;
  }
  // An answer to a request. Values are above all that their client had when it asked, and nobody has them twice.
  void take(std::uint64_t value, const Asked& request, Picos now, bool measured) {
    if (value < request.floor) [[unlikely]]
      ++disordered;
    keep(value);
    ++answers;
    if (measured) latency.record(now - request.first);
  }
  // An answer to a request that had one: asked again too early.
  void take_surplus(std::uint64_t value) {
    keep(value);
    ++surplus;
  }

  std::uint64_t received() const { return answers + surplus; }

  ValueAudit* audit;
  Histogram latency;
  std::uint64_t next;             // one more than the largest value so far
  std::uint64_t answers = 0;      // one for each request that is done
  std::uint64_t surplus = 0;      // further answers
  std::uint64_t repeated = 0;     // values that somebody had already, or that were never handed out
  std::uint64_t disordered = 0;   // values that came before one that their client had when it asked
  std::uint64_t fingerprint = 0;  // sum of mix() over all values
  std::uint64_t asked = 0;        // requests
  std::uint64_t retries = 0;      // requests sent again

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
