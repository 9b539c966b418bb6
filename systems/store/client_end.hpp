// The client's thread of a store that is asked and answers by messages: how it asks, and its workload.
#pragma once

#include <cstdint>
#include <span>

#include "lookups/mica_store.hpp"
#include "systems/requests/client.hpp"
#include "systems/requests/peers.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

// A request of a store's client that waits for its response.
struct StoreRequestSlot : RequestSlot {
  StoreRequest request;
};

// Asks each request of the oracle at the thread of the server that owns its key. Derived has `send_new(lane, slot, key,
// end)`. Lane is a RequestLane of StoreRequestSlots.
template <class Derived, class State, class Lane>
class StoreAsker : public RequestAsker {
 public:
  State* state = nullptr;
  std::span<Lane> lanes;  // one per thread of the server

  bool ask(Picos now, RunEnd& end) {
    while (may_ask(state->queues[0])) {
      if (!drawn_) {
        next_ = state->oracle->draw();
        key_ = state->oracle->workload().hash(next_.key);
        drawn_ = true;
      }
      Lane& lane = lanes[owner_of(key_, static_cast<std::uint32_t>(lanes.size()))];
      if (lane.next().open) return true;  // its response was lost
      drawn_ = false;
      if (!open_one(end)) return false;
      state->oracle->ask(next_, now);
      auto& slot = lane.begin(now);
      slot.request = next_;
      if (!static_cast<Derived&>(*this).send_new(lane, slot, key_, end)) return false;
    }
    return true;
  }

 private:
  StoreRequest next_;
  lookups::KeyHash key_;
  bool drawn_ = false;  // `next_` waits for its slot
};

template <class Asker, class State>
class StoreClientEnd : public RequestClientEnd<Asker, State>, public StoreClientAccount {
 public:
  std::uint64_t sent_to(std::uint32_t) const override {
    return parts_.oracle.counts.asked + parts_.oracle.counts.retries;
  }
  std::uint64_t received() const override { return parts_.oracle.done() + parts_.oracle.counts.surplus; }
  const ClientOracle& oracle() const override { return parts_.oracle; }
  Picos window() const override { return this->window_; }

 protected:
  StoreClientEnd(const ThreadSetup& setup, const StoreOptions& options)
      : RequestClientEnd<Asker, State>(setup, {}, options.retry_after), parts_(setup, options) {
    this->state_.oracle = &parts_.oracle;
    this->asker_.outstanding = options.window;
  }

  ClientOracleParts parts_;
};

}  // namespace verbscope
