#include "systems/raft/store_client.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/error.hpp"
#include "systems/raft/replica_server.hpp"

namespace verbscope {

namespace {

// A value names its PUT in each of its words.
StoreValue value_of(std::uint64_t id) {
  StoreValue value;
  for (std::size_t at = 0; at < kStoreValue; at += sizeof id) std::memcpy(value.data() + at, &id, sizeof id);
  return value;
}
// 0: no PUT writes this value.
std::uint64_t id_of(const StoreValue& value) {
  std::uint64_t id = 0;
  std::memcpy(&id, value.data(), sizeof id);
  return value == value_of(id) ? id : 0;
}

constexpr std::uint64_t kOperationBits = 32;

}  // namespace

StoreClient::StoreClient(ServiceThread& thread, const StoreClientOptions& options, Record record)
    : thread_(thread), options_(options), record_(std::move(record)), sessions_(thread.servers().size()) {
  leader_ = static_cast<std::uint32_t>(thread_.random() % sessions_.size());
  for (std::uint32_t i = 0; i < options_.outstanding; ++i) {
    Slot& slot = slots_.emplace_back();
    slot.client = this;
    slot.request = thread_.allocate(sizeof(StoreRequest));
    slot.response = thread_.allocate(sizeof(StoreAnswer));
  }
}

void StoreClient::connect() {
  const auto opened = [](const Slot& slot) { return slot.session != 0; };
  const Picos deadline = thread_.now() + options_.give_up;
  for (Slot& slot : slots_) begin(slot);
  while (!std::ranges::all_of(slots_, opened) && thread_.pass()) {
    if (thread_.now() > deadline) fail("no replica leads: no session after {:.1f} s", to_seconds(options_.give_up));
    step();
  }
}

void StoreClient::run_until(Picos end) {
  running_ = true;
  for (Slot& slot : slots_) {
    if (slot.phase == Phase::ready) begin(slot);
  }
  while (thread_.now() < end && thread_.pass()) step();
  running_ = false;
}

void StoreClient::drain() {
  while (step() && thread_.pass()) {
  }
  thread_.finish();  // no call may end later
}

// What is to do after a pass. True if operations are outstanding.
bool StoreClient::step() {
  const Picos now = thread_.now();
  for (HistoryEvent& event : std::exchange(over_, {})) {
    event.completed = options_.clock();
    if (record_) record_(event);
  }
  bool busy = false;
  for (Slot& slot : slots_) {
    if (slot.phase == Phase::waits && now - slot.since > options_.give_up) give_up(slot);
    if (slot.phase == Phase::waits) {
      if (now >= slot.again_at) {
        ask(slot);
      } else {
        thread_.wake_by(slot.again_at);
      }
    }
    if (slot.phase == Phase::asking && now - slot.asked > options_.patience) leave(slot.server);
    busy = busy || slot.phase != Phase::ready;
  }
  return busy || !over_.empty();
}

void StoreClient::begin(Slot& slot) {
  slot.since = thread_.now();
  if (record_) slot.invoked = options_.clock();
  slot.op = StoreOp::open;
  if (slot.session != 0) {
    slot.operation = ++operations_;
    slot.op = thread_.random() % 100 < options_.put_percent ? StoreOp::put : StoreOp::get;
    slot.key = thread_.random() % options_.keys;
    if (slot.op == StoreOp::put) {
      ++slot.number;
      slot.value = options_.client << kOperationBits | slot.operation;
    }
  }
  const StoreRequest request{slot.op, slot.session, slot.number, store_key(slot.key), value_of(slot.value)};
  slot.request.bytes = static_cast<std::uint32_t>(StoreRequest::bytes(slot.op));
  std::memcpy(slot.request.data, &request, slot.request.bytes);
  if (record_ && slot.op == StoreOp::put) record_(event_of(slot));
  ask(slot);
}

HistoryEvent StoreClient::event_of(const Slot& slot) const {
  return {.client = options_.client,
          .number = slot.operation,
          .kind = slot.op == StoreOp::put ? OperationKind::put : OperationKind::get,
          .key = slot.key,
          .value = slot.op == StoreOp::put ? slot.value : kNoValue,
          .invoked = slot.invoked};
}

void StoreClient::ask(Slot& slot) {
  slot.server = leader_;
  slot.asked = thread_.now();
  slot.phase = Phase::asking;
  std::optional<std::uint16_t>& session = sessions_[leader_];
  if (session && thread_.state(*session) == SessionState::failed) leave(leader_);
  if (!session) session = thread_.open(thread_.servers()[leader_]);
  thread_.call(*session, {kStoreRequest, &slot.request, &slot.response, &done, &slot});
}

// The calls in its session end in later passes.
void StoreClient::leave(std::uint32_t server) {
  if (!sessions_[server]) return;
  thread_.disconnect(*std::exchange(sessions_[server], std::nullopt));
  if (leader_ == server) leader_ = static_cast<std::uint32_t>((server + 1) % sessions_.size());
}

void StoreClient::done(void* context, std::uint64_t, RpcStatus status) {
  Slot& slot = *static_cast<Slot*>(context);
  slot.client->finish(slot, status);
}

void StoreClient::finish(Slot& slot, RpcStatus status) {
  if (status != RpcStatus::answered) {
    leave(slot.server);
    return again(slot, options_.pause);
  }
  StoreAnswer answer;
  std::memcpy(&answer, slot.response.data, std::min<std::size_t>(slot.response.bytes, sizeof answer));
  switch (answer.status) {
    case StoreStatus::done:
      return complete(slot, answer);
    case StoreStatus::not_leader: {
      const bool named = answer.leader > 0 && answer.leader <= sessions_.size() && answer.leader - 1u != slot.server;
      if (slot.server == leader_) {
        leader_ = named ? answer.leader - 1u : static_cast<std::uint32_t>((leader_ + 1) % sessions_.size());
      }
      return again(slot, named ? Picos(0) : options_.pause);
    }
    case StoreStatus::expired:  // the operation must not be asked for in another session
      slot.session = 0;
      return give_up(slot);
    case StoreStatus::unknown:
    case StoreStatus::no_space:
      return again(slot, options_.pause);
  }
}

void StoreClient::complete(Slot& slot, const StoreAnswer& answer) {
  if (slot.op == StoreOp::open) {
    slot.session = answer.session;
    slot.number = 0;
    return next(slot);
  }
  const Picos latency = thread_.now() - slot.since;
  HistoryEvent event = event_of(slot);
  if (slot.op == StoreOp::put) {
    ++counts_.puts;
    counts_.put_latency.record(latency);
  } else {
    ++counts_.gets;
    counts_.get_latency.record(latency);
    if (answer.found) event.value = id_of(answer.value);
    if (answer.found && event.value == kNoValue) ++counts_.wrong;
  }
  over_.push_back(event);
  next(slot);
}

// In the pass in which the operation before is over.
void StoreClient::next(Slot& slot) {
  slot.phase = Phase::ready;
  if (running_) begin(slot);
}

void StoreClient::again(Slot& slot, Picos pause) {
  ++counts_.retries;
  slot.phase = Phase::waits;
  slot.again_at = thread_.now() + pause;
}

void StoreClient::give_up(Slot& slot) {
  if (slot.op != StoreOp::open) ++counts_.unknown;
  if (slot.op == StoreOp::put) slot.session = 0;  // a copy may still be on its way
  next(slot);
}

}  // namespace verbscope
