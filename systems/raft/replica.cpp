#include "systems/raft/replica.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

unsigned library_time(Picos time) {
  return static_cast<unsigned>(std::max<std::int64_t>(time / RaftIo::kTimeUnit, 1));
}

// Of the entries before a snapshot this share stays, for followers that are a little behind.
constexpr std::uint32_t kTrailingShare = 8;
constexpr std::uint64_t kPlantEvery = 16;  // requests for each planted bug
constexpr std::size_t kDoubleAfter =
    5;  // planted PUTs wait before the first is applied again: concurrent PUTs are over

StoreRequest parse(std::span<const std::byte> bytes) {
  StoreRequest request{.op = StoreOp{}};
  if (bytes.size() >= StoreRequest::bytes(StoreOp::open)) {
    std::memcpy(&request, bytes.data(), std::min(bytes.size(), sizeof request));
    if (bytes.size() != StoreRequest::bytes(request.op)) request.op = StoreOp{};
  }
  return request;
}

}  // namespace

Replica::Library::Library(raft& library, raft_io& io, raft_fsm& fsm, const ReplicaOptions& options) : raft_(library) {
  const std::string& address = options.io.addresses[options.id - 1];
  if (raft_init(&raft_, &io, &fsm, options.id, address.c_str()) != 0) fail("C-Raft: {}", raft_.errmsg);
}

Replica::Replica(const ReplicaOptions& options, RaftLog& log, RaftNetwork& network, Answer function, void* context)
    : options_(options),
      answer_(function),
      context_(context),
      io_(log, network, options_.io),
      store_(options.keys),
      library_((set_callbacks(), raft_), io_.callbacks(), fsm_, options_) {
  if (options_.planted == PlantedBug::double_put) store_.ignore_numbers();
  start(log);
}

void Replica::start(RaftLog& log) {
  raft_.data = this;
  raft_set_election_timeout(&raft_, library_time(options_.io.election));
  raft_set_heartbeat_timeout(&raft_, library_time(options_.io.heartbeat));
  raft_set_install_snapshot_timeout(&raft_, library_time(10 * options_.io.election));
  raft_set_snapshot_threshold(&raft_, options_.snapshot_every);
  raft_set_snapshot_trailing(&raft_, std::max(options_.snapshot_every / kTrailingShare, 1u));
  raft_set_pre_vote(&raft_, true);
  if (log.term() == 0) {
    raft_configuration configuration;
    raft_configuration_init(&configuration);
    int error = 0;
    for (raft_id id = 1; error == 0 && id <= options_.io.addresses.size(); ++id) {
      error = raft_configuration_add(&configuration, id, options_.io.addresses[id - 1].c_str(), RAFT_VOTER);
    }
    if (error == 0) error = raft_bootstrap(&raft_, &configuration);
    raft_configuration_close(&configuration);
    if (error != 0) fail("replica {}: {}", options_.id, raft_strerror(error));
  }
  if (const int error = raft_start(&raft_); error != 0) fail("replica {}: {}", options_.id, raft_strerror(error));
  state_ = raft_.state;
  term_ = raft_.current_term;
}

void Replica::set_callbacks() {
  fsm_.version = 1;
  fsm_.data = this;
  fsm_.apply = [](raft_fsm* fsm, const raft_buffer* command, void** result) {
    Replica& self = *static_cast<Replica*>(fsm->data);
    const std::span bytes(static_cast<const std::byte*>(command->base), command->len);
    if (self.options_.planted == PlantedBug::stale_read) {
      const StoreRequest request = parse(bytes);
      if (const std::byte* old = self.store_.get(request.key))
        std::copy_n(old, kStoreValue, self.before_[request.key].begin());
    }
    self.applied_ = self.store_.apply(bytes);
    self.io_.charge(self.options_.io.costs.look_up());
    *result = &self.applied_;
    return 0;
  };
  fsm_.snapshot = [](raft_fsm* fsm, raft_buffer* buffers[], unsigned* count) {
    Replica& self = *static_cast<Replica*>(fsm->data);
    const std::size_t bytes = self.store_.snapshot_bytes();
    *buffers = raft_array<raft_buffer>(1);
    **buffers = {raft_array<std::byte>(bytes), bytes};
    *count = 1;
    self.store_.snapshot(static_cast<std::byte*>((*buffers)->base));
    ++self.counts_.snapshots;
    return 0;
  };
  fsm_.restore = [](raft_fsm* fsm, raft_buffer* content) {
    Replica& self = *static_cast<Replica*>(fsm->data);
    if (!self.store_.restore({static_cast<const std::byte*>(content->base), content->len})) return RAFT_MALFORMED;
    raft_free(content->base);
    return 0;
  };
}

void Replica::request(const RpcHandle& handle, std::span<const std::byte> bytes, Picos now) {
  const StoreRequest request = parse(bytes);
  io_.advance(now);
  if (raft_.state != RAFT_LEADER) return answer(handle, refusal(StoreStatus::not_leader));
  if (request.op == StoreOp::get) return get({handle, request.key, now}, now);
  if (request.op == StoreOp::open || request.op == StoreOp::put) return put(handle, bytes, now);
  answer(handle, refusal(StoreStatus::expired));
}

StoreAnswer Replica::refusal(StoreStatus status) const {
  raft_id leader = 0;
  const char* address = nullptr;
  raft_leader(const_cast<raft*>(&raft_), &leader, &address);
  return {.status = status, .leader = static_cast<std::uint8_t>(leader)};
}

void Replica::put(const RpcHandle& handle, std::span<const std::byte> bytes, Picos now) {
  if (options_.planted == PlantedBug::lost_put && bytes.size() == sizeof(StoreRequest) &&
      ++planted_ % kPlantEvery == 0) {
    return answer(handle, {});
  }
  if (options_.planted == PlantedBug::double_put) plant_double(bytes, now);
  note_lag();
  const int error = propose(handle, bytes, now);
  if (error == 0) return;
  if (error == RAFT_NOSPACE) {
    ++counts_.no_space;
    hand_over(now);
    return answer(handle, {.status = StoreStatus::no_space});
  }
  answer(handle, refusal(error == RAFT_NOTLEADER ? StoreStatus::not_leader : StoreStatus::unknown));
}

int Replica::propose(const RpcHandle& handle, std::span<const std::byte> bytes, Picos now) {
  if (free_.empty()) {
    proposals_.emplace_back();
    free_.push_back(&proposals_.back());
  }
  Proposal& proposal = *free_.back();
  proposal.request.data = &proposal;
  proposal.replica = this;
  proposal.handle = handle;
  proposal.since = now;
  const raft_buffer command{raft_array<std::byte>(bytes.size()), bytes.size()};
  std::memcpy(command.base, bytes.data(), bytes.size());
  const int error =
      raft_apply(&raft_, &proposal.request, &command, 1, [](struct raft_apply* request, int status, void* result) {
        auto& own = *static_cast<Proposal*>(request->data);
        own.replica->finish(own, status, static_cast<const StoreAnswer*>(result));
      });
  if (error != 0) {
    raft_free(command.base);
    return error;
  }
  free_.pop_back();
  io_.charge(options_.io.costs.propose);
  return 0;
}

void Replica::finish(Proposal& proposal, int status, const StoreAnswer* applied) {
  if (proposal.handle.slot != nullptr) {
    if (status == 0) {
      ++counts_.puts;
      commits_.record(io_.now() - proposal.since);
      answer(proposal.handle, *applied);
    } else {
      answer(proposal.handle, refusal(StoreStatus::unknown));
    }
  }
  free_.push_back(&proposal);
}

void Replica::plant_double(std::span<const std::byte> bytes, Picos now) {
  if (bytes.size() != sizeof(StoreRequest)) return;
  if (++planted_ % kPlantEvery == 0) doubles_.emplace_back(bytes.begin(), bytes.end());
  if (doubles_.size() == kDoubleAfter) {
    propose({}, doubles_.front(), now);
    doubles_.pop_front();
  }
}

void Replica::get(const Read& read, Picos now) {
  if (has_lease(now)) return serve(read);
  reads_.push_back(read);
}

bool Replica::has_lease(Picos now) const {
  if (options_.reads != ReadMode::lease || !ready_ || lease_broken_) return false;
  const Picos contact = io_.majority_contact();
  const Picos lease(static_cast<std::int64_t>(static_cast<double>(options_.io.election.count()) * (1 - kClockDrift)));
  return contact >= leading_since_ && now < contact + lease - 2 * RaftIo::kTimeUnit;
}

void Replica::serve(const Read& read) {
  StoreAnswer result;
  const std::byte* value = store_.get(read.key);
  if (options_.planted == PlantedBug::stale_read && ++planted_ % kPlantEvery == 0) {
    if (const auto old = before_.find(read.key); old != before_.end()) value = old->second.data();
  }
  result.found = value != nullptr;
  if (result.found) std::copy_n(value, kStoreValue, result.value.begin());
  io_.charge(options_.io.costs.look_up());
  ++counts_.gets;
  answer(read.handle, result);
}

// GETs in the order of their arrival. Entries are applied when they are committed, so that the state has all of them.
void Replica::serve_reads(Picos now) {
  if (reads_.empty()) return;
  if (raft_.state != RAFT_LEADER) {
    for (const Read& read : std::exchange(reads_, {})) answer(read.handle, refusal(StoreStatus::not_leader));
    return;
  }
  const Picos contact = io_.majority_contact();
  while (ready_ && !reads_.empty() && (reads_.front().since <= contact || has_lease(now))) {
    serve(reads_.front());
    reads_.pop_front();
  }
  if (!reads_.empty() && (contact >= probed_ || now - probed_ > options_.io.heartbeat)) {
    probed_ = now;
    ++counts_.probes;
    io_.probe();
  }
}

void Replica::poll(Picos now) {
  io_.poll(now);
  watch(now);
  serve_reads(now);
}

void Replica::watch(Picos now) {
  if (raft_.current_term != term_) {
    term_ = raft_.current_term;
    ++counts_.terms;
  }
  if (raft_.state != state_) {
    state_ = raft_.state;
    ready_ = false;
    if (state_ == RAFT_UNAVAILABLE) fail("replica {} cannot go on: {}", options_.id, raft_errmsg(&raft_));
    if (state_ == RAFT_CANDIDATE) ++counts_.elections;
    if (state_ == RAFT_LEADER) {
      ++counts_.leaderships;
      leading_since_ = now;
      lease_broken_ = false;
    }
  }
  if (state_ == RAFT_LEADER && !ready_ && !barrier_waits_) begin_leading();
}

// C-Raft 0.15 appends nothing when it begins to lead. Until an entry of its own term is committed, a leader does not
// know which of the earlier ones are (Ongaro, section 6.4).
void Replica::begin_leading() {
  barrier_.data = this;
  const int error = raft_barrier(&raft_, &barrier_, [](struct raft_barrier* barrier, int status) {
    Replica& self = *static_cast<Replica*>(barrier->data);
    self.barrier_waits_ = false;
    self.ready_ = status == 0;
  });
  barrier_waits_ = error == 0;
}

// Without space this replica can lead no PUTs: another one that has space is to lead.
void Replica::hand_over(Picos now) {
  if (now < hand_over_at_ || raft_.transfer != nullptr) return;
  for (raft_id id = 1; id <= options_.io.addresses.size(); ++id) {
    if (id == options_.id || io_.full(id)) continue;
    hand_over_at_ = now + 10 * options_.io.election;
    lease_broken_ = true;
    raft_transfer(&raft_, &transfer_, id, [](struct raft_transfer*) {});
    return;
  }
}

void Replica::note_lag() {
  raft_index least = raft_last_index(&raft_);
  const raft_index last = least;
  for (unsigned i = 0; i < raft_.configuration.n; ++i) {
    if (raft_.configuration.servers[i].id != options_.id) {
      least = std::min(least, raft_.leader_state.progress[i].match_index);
    }
  }
  ++counts_.lag_samples;
  counts_.lag_sum += last - least;
  counts_.lag_max = std::max<std::uint64_t>(counts_.lag_max, last - least);
}

void Replica::clear_counts() {
  counts_ = {};
  commits_.clear();
  io_.clear_append_waits();
}

}  // namespace verbscope
