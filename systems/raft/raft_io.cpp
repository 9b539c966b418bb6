#include "systems/raft/raft_io.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

namespace verbscope {

namespace {

constexpr int kMessageBits = 36;  // of the number of a message in a start of its sender

// TimeoutNow has no callback.
void finish(raft_io_send* request, int status) {
  if (request->cb != nullptr) request->cb(request, status);
}

bool is_result(const raft_message& message) {
  return message.type == RAFT_IO_APPEND_ENTRIES_RESULT || message.type == RAFT_IO_REQUEST_VOTE_RESULT;
}

bool is_refused_pre_vote(const raft_message& message) {
  const raft_request_vote_result& result = message.request_vote_result;
  return message.type == RAFT_IO_REQUEST_VOTE_RESULT && result.pre_vote == raft_tribool_true && !result.vote_granted;
}

}  // namespace

RaftIo::RaftIo(RaftLog& log, RaftNetwork& network, const RaftIoOptions& options)
    : log_(log),
      network_(network),
      options_(options),
      number_(log.next_start() << kMessageBits),
      peers_(options.addresses.size()) {
  io_.version = 1;
  io_.impl = this;
  set_callbacks();
}

template <class Action>
int RaftIo::guarded(Action action) {
  try {
    return action();
  } catch (...) {
    failure_ = std::current_exception();
    return RAFT_IOERR;
  }
}

void RaftIo::set_callbacks() {
  io_.init = [](raft_io* io, raft_id id, const char*) {
    of(io).id_ = id;
    return 0;
  };
  io_.close = [](raft_io* io, raft_io_close_cb done) { of(io).close(done); };
  io_.load = [](raft_io* io, raft_term* term, raft_id* voted_for, raft_snapshot** snapshot, raft_index* start,
                raft_entry** entries, std::size_t* count) {
    return of(io).guarded([&] { return of(io).load(term, voted_for, snapshot, start, entries, count); });
  };
  io_.start = [](raft_io* io, unsigned, raft_io_tick_cb tick, raft_io_recv_cb take) {
    RaftIo& self = of(io);
    self.tick_ = tick;
    self.receive_ = take;
    self.tick_at_ = self.now_ + self.options_.heartbeat / 2;
    self.vote_at_ = self.now_ + self.options_.election;
    return 0;
  };
  io_.bootstrap = [](raft_io* io, const raft_configuration* configuration) {
    return of(io).guarded([&] { return of(io).bootstrap(*configuration); });
  };
  io_.recover = [](raft_io*, const raft_configuration*) { return RAFT_IOERR; };  // the set of replicas is fixed
  io_.set_term = [](raft_io* io, raft_term term) {
    return of(io).guarded([&] { return of(io).log_.set_vote(term, 0), 0; });
  };
  io_.set_vote = [](raft_io* io, raft_id voted_for) {
    return of(io).guarded([&] { return of(io).log_.set_vote(of(io).log_.term(), voted_for), 0; });
  };
  io_.send = [](raft_io* io, raft_io_send* request, const raft_message* message, raft_io_send_cb done) {
    return of(io).guarded([&] { return of(io).send(request, *message, done); });
  };
  io_.append = [](raft_io* io, raft_io_append* request, const raft_entry* entries, unsigned count,
                  raft_io_append_cb done) {
    return of(io).guarded([&] { return of(io).append(request, {entries, count}, done); });
  };
  io_.truncate = [](raft_io* io, raft_index index) { return of(io).log_.truncate(index), 0; };
  io_.snapshot_put = [](raft_io* io, unsigned trailing, raft_io_snapshot_put* request, const raft_snapshot* snapshot,
                        raft_io_snapshot_put_cb done) {
    return of(io).guarded([&] { return of(io).snapshot_put(trailing, request, *snapshot, done); });
  };
  io_.snapshot_get = [](raft_io* io, raft_io_snapshot_get* request, raft_io_snapshot_get_cb done) {
    request->cb = done;
    of(io).loading_.push_back(request);
    return 0;
  };
  io_.time = [](raft_io* io) { return static_cast<raft_time>(of(io).now_ / kTimeUnit); };
  io_.random = [](raft_io* io, int low, int high) { return of(io).random(low, high); };
}

// Replica 1 begins the first election of a new cluster, so that it leads if nothing fails. The others begin later, but
// not in step: their votes would be split again and again.
int RaftIo::random(int low, int high) const {
  if (log_.next() <= 2) {
    if (id_ == 1) return low;
    low += (high - low) / 2;
  }
  return low + static_cast<int>(options_.random() % static_cast<std::uint64_t>(std::max(high - low, 1)));
}

int RaftIo::load(raft_term* term, raft_id* voted_for, raft_snapshot** snapshot, raft_index* start, raft_entry** entries,
                 std::size_t* count) {
  *term = log_.term();
  *voted_for = log_.voted_for();
  *snapshot = log_.load_snapshot();
  *start = log_.first();
  *entries = log_.load_entries();
  *count = log_.next() - log_.first();
  return 0;
}

int RaftIo::bootstrap(const raft_configuration& configuration) {
  if (log_.term() != 0) return RAFT_CANTBOOTSTRAP;
  raft_entry entry{1, RAFT_CHANGE, {}, nullptr};
  if (const int error = raft_configuration_encode(&configuration, &entry.buf); error != 0) return error;
  const bool fits = log_.append({&entry, 1});
  log_.poll();
  raft_free(entry.buf.base);
  if (!fits) return RAFT_NOSPACE;
  log_.set_vote(1, 0);  // durable, with the entry
  return 0;
}

int RaftIo::send(raft_io_send* request, const raft_message& message, raft_io_send_cb done) {
  const bool result = message.type == RAFT_IO_APPEND_ENTRIES_RESULT;
  std::byte* const to = network_.prepare(message.server_id, encoded_bytes(message),
                                         is_result(message) ? MessageOrder::answer : MessageOrder::in_order);
  if (to == nullptr) {
    if (message.type == RAFT_IO_APPEND_ENTRIES) probe(message.server_id);  // so that it still follows
    return RAFT_NOCONNECTION;
  }
  const MessageNotes notes{.probe = result && current_.probe, .full = result && full_, .number = ++number_};
  if (is_refused_pre_vote(message)) {
    raft_message refusal = message;
    raft_term& term = refusal.request_vote_result.term;
    term = std::max(term, raft_term{log_.term()});
    encode(refusal, id_, notes, to);
  } else if (result && current_.appends && message.append_entries_result.rejected == 0) {
    raft_message less = message;
    raft_index& last = less.append_entries_result.last_log_index;
    last = std::min(last, raft_index{current_.last});
    encode(less, id_, notes, to);
  } else {
    encode(message, id_, notes, to);
  }
  charge(options_.costs.send);
  request->cb = done;
  sending_.push_back(request);
  network_.send(reinterpret_cast<std::uint64_t>(request));
  return 0;
}

void RaftIo::sent(std::uint64_t tag, bool delivered) {
  auto* const request = reinterpret_cast<raft_io_send*>(tag);
  const auto found = std::ranges::find(sending_, request);
  if (found == sending_.end()) return;  // a probe, or after close()
  *found = sending_.back();
  sending_.pop_back();
  sent_.push_back({request, delivered ? 0 : RAFT_NOCONNECTION});
}

int RaftIo::append(raft_io_append* request, std::span<const raft_entry> entries, raft_io_append_cb done) {
  full_ = !log_.append(entries);
  if (full_) return RAFT_NOSPACE;
  request->cb = done;
  new_entries_ += entries.size();
  appends_.push_back({request, log_.appends(), now_});
  return 0;
}

int RaftIo::snapshot_put(unsigned trailing, raft_io_snapshot_put* request, const raft_snapshot& snapshot,
                         raft_io_snapshot_put_cb done) {
  if (storing_ != nullptr) return RAFT_BUSY;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < snapshot.n_bufs; ++i) bytes += snapshot.bufs[i].len;
  charge(Picos(static_cast<std::int64_t>(1000 * static_cast<double>(bytes) / options_.costs.copy_bytes_per_ns)));
  request->cb = done;
  storing_ = request;
  log_.begin_snapshot(snapshot, trailing);
  return 0;
}

void RaftIo::write() {
  charge(options_.costs.entry * static_cast<std::int64_t>(std::exchange(new_entries_, 0)));
  log_.poll();
  complete_appends(log_.durable_appends());
}

void RaftIo::poll(Picos now) {
  now_ = now;
  write();
  for (const Sent& each : std::exchange(sent_, {})) finish(each.request, each.status);
  complete_snapshots();
  if (now_ >= tick_at_ && tick_ != nullptr) {
    tick_at_ = now_ + options_.heartbeat / 2;
    tick_(&io_);
  }
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

Picos RaftIo::wake_at() const {
  const bool ready = !sent_.empty() || !loading_.empty() || !appends_.empty() || storing_ != nullptr;
  return ready ? now_ : tick_at_;
}

void RaftIo::complete_appends(std::uint64_t upto) {
  while (!appends_.empty() && appends_.front().number <= upto) {
    raft_io_append* const request = appends_.front().request;
    if (log_.storage().slow()) append_waits_.record(now_ - appends_.front().since);
    appends_.pop_front();
    request->cb(request, 0);
  }
}

void RaftIo::complete_snapshots() {
  if (storing_ != nullptr) {
    const RaftLog::Stored stored = log_.snapshot_stored();
    if (stored != RaftLog::Stored::no) {
      raft_io_snapshot_put* const request = std::exchange(storing_, nullptr);
      request->cb(request, stored == RaftLog::Stored::yes ? 0 : RAFT_NOSPACE);
    }
  }
  if (storing_ != nullptr) return;  // another thread may replace what would be loaded
  for (raft_io_snapshot_get* request : std::exchange(loading_, {})) {
    raft_snapshot* const snapshot = log_.load_snapshot();
    request->cb(request, snapshot, snapshot != nullptr ? 0 : RAFT_NOTFOUND);
  }
}

// The library frees what its requests refer to in their callbacks. It has no state any more, so that it makes nothing
// of an append that ends. With an error it would truncate its log at each one, and 0.15 fails at the second.
void RaftIo::close(raft_io_close_cb done) {
  tick_ = nullptr;
  receive_ = nullptr;
  complete_appends(~std::uint64_t{0});
  for (raft_io_send* request : std::exchange(sending_, {})) finish(request, RAFT_CANCELED);
  for (const Sent& each : std::exchange(sent_, {})) finish(each.request, RAFT_CANCELED);
  for (raft_io_snapshot_get* request : std::exchange(loading_, {})) request->cb(request, nullptr, RAFT_CANCELED);
  if (raft_io_snapshot_put* const request = std::exchange(storing_, nullptr)) {
    log_.wait_for_snapshot();
    request->cb(request, RAFT_CANCELED);
  }
  done(&io_);
}

void RaftIo::receive(std::span<const std::byte> bytes, Picos now, Picos asked) {
  now_ = now;
  std::optional<DecodedMessage> decoded = decode(bytes);
  if (!decoded || decoded->message.server_id > peers_.size()) {
    if (decoded) release(decoded->message);
    ++malformed_;
    return;
  }
  raft_message& message = decoded->message;
  if (receive_ == nullptr || !admit(*decoded, asked)) return release(message);
  charge(options_.costs.receive);
  message.server_address = options_.addresses[message.server_id - 1].c_str();
  receive_(&io_, &message);
  current_ = {};
}

// What this class does with a message before the library sees it. False: the library must not.
bool RaftIo::admit(DecodedMessage& decoded, Picos asked) {
  raft_message& message = decoded.message;
  if (!is_result(message) && !decoded.notes.probe) {
    std::uint64_t& last = peers_[message.server_id - 1].last;
    if (decoded.notes.number <= last) return false;
    last = decoded.notes.number;
  }
  if (message.type == RAFT_IO_REQUEST_VOTE) return now_ >= vote_at_;
  if (message.type == RAFT_IO_APPEND_ENTRIES) {
    raft_append_entries& m = message.append_entries;
    spare_entries(m);
    current_ = {.appends = true, .last = m.prev_log_index + m.n_entries, .probe = decoded.notes.probe};
  } else if (message.type == RAFT_IO_APPEND_ENTRIES_RESULT) {
    const raft_term term = message.append_entries_result.term;
    Peer& peer = peers_[message.server_id - 1];
    peer.full = decoded.notes.full;
    if (term == log_.term()) peer.contact = std::max(peer.contact, asked);
    return !decoded.notes.probe || term > log_.term();
  }
  return true;
}

// Without space for its entries, a message is taken as a heartbeat.
void RaftIo::spare_entries(raft_append_entries& message) {
  if (message.n_entries == 0) return;
  full_ = !log_.has_room({message.entries, message.n_entries});
  if (!full_) return;
  raft_free(message.entries[0].batch);
  raft_free(std::exchange(message.entries, nullptr));
  message.n_entries = 0;
  message.leader_commit = std::min(message.leader_commit, message.prev_log_index);
}

void RaftIo::probe() {
  for (raft_id to = 1; to <= peers_.size(); ++to) {
    if (to != id_) probe(to);
  }
}

void RaftIo::probe(raft_id to) {
  raft_message message{};
  message.type = RAFT_IO_APPEND_ENTRIES;
  message.append_entries = {log_.term(), 0, 0, 0, nullptr, 0};
  std::byte* const memory = network_.prepare(to, encoded_bytes(message), MessageOrder::any);
  if (memory == nullptr) return;
  encode(message, id_, {.probe = true}, memory);
  charge(options_.costs.send);
  network_.send(0);
}

Picos RaftIo::majority_contact() const {
  std::array<Picos, kMostReplicas> contacts{};
  for (raft_id id = 1; id <= peers_.size(); ++id) contacts[id - 1] = id == id_ ? Picos::max() : peers_[id - 1].contact;
  const auto middle = contacts.begin() + static_cast<std::ptrdiff_t>(peers_.size() / 2);
  std::nth_element(contacts.begin(), middle, contacts.begin() + static_cast<std::ptrdiff_t>(peers_.size()),
                   std::greater<>());
  return *middle;
}

}  // namespace verbscope
