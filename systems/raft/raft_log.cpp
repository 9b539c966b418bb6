#include "systems/raft/raft_log.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/units.hpp"
#include "systems/raft/raft_message.hpp"

namespace verbscope {

namespace {

struct Vote {
  std::uint64_t check = 0;
  std::uint64_t number = 0;  // the higher one counts
  std::uint64_t term = 0;
  std::uint64_t voted_for = 0;
};
constexpr std::uint64_t kVotePlace = 64;  // a sector has it whole
constexpr std::uint64_t kRecords = 2 * kVotePlace;

constexpr std::uint16_t kSnapshotType = 0xffff;
struct Record {
  std::uint64_t check = 0;
  std::uint64_t index = 0;
  std::uint64_t term = 0;
  std::uint64_t bytes = 0;  // of data, which follows, filled up to a multiple of 8
  std::uint64_t type = 0;
};
constexpr std::uint64_t kBarrierRoom = 4096;  // commands leave this for barriers

// A hash of what follows the checksum of a vote or a record. A multiple of 8 bytes.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t hash = 0x76657262) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    hash = mix(hash ^ word);
  }
  return hash;
}
template <class T>
std::uint64_t checksum_of(const T& head) {
  return checksum(std::as_bytes(std::span(&head, 1)).subspan(sizeof head.check));
}

constexpr std::uint64_t record_bytes(std::uint64_t data) {
  return sizeof(Record) + round_up(data, 8);
}

std::uint64_t bytes_of(std::span<const raft_entry> entries) {
  std::uint64_t bytes = 0;
  for (const raft_entry& entry : entries) bytes += record_bytes(entry.buf.len);
  return bytes;
}

// Fills in the head of a record whose data is behind it.
void seal(std::span<std::byte> record, Record head) {
  head.check = checksum(record.subspan(sizeof head), checksum_of(head));
  std::memcpy(record.data(), &head, sizeof head);
}

// The record at `at`, with its data; none if there is none or it is not whole.
std::optional<Record> read_record(const LogStorage& storage, std::uint64_t at, std::vector<std::byte>& data) {
  Record head;
  if (at + sizeof head > storage.size()) return std::nullopt;
  storage.read(at, std::as_writable_bytes(std::span(&head, 1)));
  const std::uint64_t room = storage.size() - at - sizeof head;
  if (head.check == 0 || head.bytes > room || round_up(head.bytes, 8) > room) return std::nullopt;
  data.resize(round_up(head.bytes, 8));
  storage.read(at + sizeof head, data);
  if (checksum(data, checksum_of(head)) != head.check) return std::nullopt;
  data.resize(head.bytes);
  return head;
}

template <class T>
bool is_ready(const std::future<T>& result) {
  return result.wait_for(std::chrono::seconds(0)) != std::future_status::timeout;  // or deferred
}

std::launch launch_for(const LogStorage& storage) {
  return storage.slow() ? std::launch::async : std::launch::deferred;
}

// A snapshot as the record in its storage.
std::vector<std::byte> snapshot_record(const raft_snapshot& snapshot) {
  std::uint64_t bytes = sizeof(std::uint64_t) + encoded_bytes(snapshot.configuration);
  for (unsigned i = 0; i < snapshot.n_bufs; ++i) bytes += snapshot.bufs[i].len;
  std::vector<std::byte> record(record_bytes(bytes));
  std::byte* to = record.data() + sizeof(Record);
  const std::uint64_t configuration_index = snapshot.configuration_index;
  std::memcpy(to, &configuration_index, sizeof configuration_index);
  to = encode(snapshot.configuration, to + sizeof configuration_index);
  for (unsigned i = 0; i < snapshot.n_bufs; ++i) {
    to = std::copy_n(static_cast<const std::byte*>(snapshot.bufs[i].base), snapshot.bufs[i].len, to);
  }
  seal(record, {.index = snapshot.index, .term = snapshot.term, .bytes = bytes, .type = kSnapshotType});
  return record;
}

}  // namespace

RaftLog::RaftLog(LogStorage& log, LogStorage& snapshot) : log_(log), snapshot_(snapshot), end_(kRecords) {
  if (!log_.reserve(kRecords)) fail("{}: no space for the log", log_.name());
  read_votes();
  read_snapshot();
  read_entries();
}

RaftLog::~RaftLog() {
  if (syncing_.valid()) syncing_.wait();
  if (storing_.valid()) storing_.wait();
}

void RaftLog::read_votes() {
  for (std::uint64_t at = 0; at < kRecords; at += kVotePlace) {
    Vote vote;
    log_.read(at, std::as_writable_bytes(std::span(&vote, 1)));
    if (vote.number <= vote_number_ || vote.check != checksum_of(vote)) continue;
    vote_number_ = vote.number;
    term_ = vote.term;
    voted_for_ = vote.voted_for;
  }
}

void RaftLog::set_vote(std::uint64_t term, std::uint64_t voted_for) {
  Vote vote{.number = ++vote_number_, .term = term, .voted_for = voted_for};
  vote.check = checksum_of(vote);
  log_.write(vote.number % 2 * kVotePlace, std::as_bytes(std::span(&vote, 1)));
  log_.sync();
  term_ = term;
  voted_for_ = voted_for;
}

std::uint64_t RaftLog::next_start() {
  set_vote(term_, voted_for_);
  return vote_number_;
}

void RaftLog::read_snapshot() {
  if (snapshot_.size() == 0) return;
  std::vector<std::byte> data;
  const std::optional<Record> head = read_record(snapshot_, 0, data);
  if (!head || head->type != kSnapshotType) fail("{}: the snapshot is damaged", snapshot_.name());
  stored_ = {head->index, head->term};
}

void RaftLog::read_entries() {
  std::vector<std::byte> data;
  next_ = 0;
  for (;;) {
    const std::optional<Record> head = read_record(log_, end_, data);
    if (!head) break;
    if (places_.empty()) next_ = head->index;
    if (head->index < first() || head->index > next_) {
      fail("{}: entry {} follows entry {}", log_.name(), head->index, next_ - 1);
    }
    truncate(head->index);
    places_.push_back(end_);
    ++next_;
    end_ += record_bytes(head->bytes);
  }
  if (log_.size() > end_) log_.cut(end_);
  const bool joins = !places_.empty() && first() <= stored_.index + 1;
  if (!places_.empty() && !joins) fail("{}: entries {} to {} are missing", log_.name(), stored_.index + 1, first() - 1);
  // A snapshot that was to replace all entries was stored, and the process ended before they were dropped.
  const bool continues = joins && next_ > stored_.index &&
                         (first() > stored_.index || stored_.index == 0 || term_of(stored_.index) == stored_.term);
  if (!continues) forget_entries();
}

void RaftLog::forget_entries() {
  places_.clear();
  next_ = stored_.index + 1;
  end_ = kRecords;
  if (log_.size() > end_) log_.cut(end_);
}

std::uint64_t RaftLog::term_of(std::uint64_t index) const {
  Record head;
  log_.read(places_[index - first()], std::as_writable_bytes(std::span(&head, 1)));
  return head.term;
}

raft_entry* RaftLog::load_entries() const {
  if (places_.empty()) return nullptr;
  std::vector<Record> heads(places_.size());
  std::uint64_t bytes = 1;  // raft_malloc(0) may be null
  for (std::size_t i = 0; i < places_.size(); ++i) {
    log_.read(places_[i], std::as_writable_bytes(std::span(&heads[i], 1)));
    bytes += heads[i].bytes;
  }
  raft_entry* const entries = raft_array<raft_entry>(places_.size());
  std::byte* const batch = raft_array<std::byte>(bytes);
  std::byte* to = batch;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Record& head = heads[i];
    log_.read(places_[i] + sizeof head, {to, head.bytes});
    entries[i] = {head.term, static_cast<unsigned short>(head.type), {to, head.bytes}, batch};
    to += head.bytes;
  }
  return entries;
}

raft_snapshot* RaftLog::load_snapshot() const {
  if (stored_.index == 0) return nullptr;
  std::vector<std::byte> data;
  const std::optional<Record> head = read_record(snapshot_, 0, data);
  raft_configuration configuration;
  std::uint64_t configuration_index = 0;
  std::span<const std::byte> rest(data);
  if (!head || rest.size() < sizeof configuration_index) fail("{}: the snapshot is damaged", snapshot_.name());
  std::memcpy(&configuration_index, rest.data(), sizeof configuration_index);
  rest = rest.subspan(sizeof configuration_index);
  if (!decode(rest, configuration)) fail("{}: the snapshot is damaged", snapshot_.name());
  raft_snapshot* const snapshot = raft_array<raft_snapshot>(1);
  raft_buffer* const content = raft_array<raft_buffer>(1);
  *content = {raft_array<std::byte>(rest.size() + 1), rest.size()};
  std::ranges::copy(rest, static_cast<std::byte*>(content->base));
  *snapshot = {head->index, head->term, configuration, configuration_index, content, 1};
  return snapshot;
}

bool RaftLog::has_room(std::span<const raft_entry> entries) {
  const bool commands = std::ranges::any_of(entries, [](const raft_entry& e) { return e.type == RAFT_COMMAND; });
  return log_.reserve(end_ + bytes_of(entries) + (commands ? kBarrierRoom : 0));
}

bool RaftLog::append(std::span<const raft_entry> entries) {
  if (!has_room(entries)) return false;
  unwritten_.push_back({entries, next_, end_});
  for (const raft_entry& entry : entries) {
    places_.push_back(end_);
    end_ += record_bytes(entry.buf.len);
    ++next_;
  }
  ++appends_;
  return true;
}

void RaftLog::write_entries() {
  for (const Unwritten& each : unwritten_) {
    records_.resize(bytes_of(each.entries));
    std::uint64_t at = 0, index = each.first;
    for (const raft_entry& entry : each.entries) {
      const std::span record = std::span(records_).subspan(at, record_bytes(entry.buf.len));
      std::memset(record.data() + record.size() - 8, 0, 8);  // what fills up the data
      if (entry.type == RAFT_BARRIER) {                      // the library does not set the data of a barrier
        std::memset(record.data() + sizeof(Record), 0, entry.buf.len);
      } else if (entry.buf.len > 0) {
        std::memcpy(record.data() + sizeof(Record), entry.buf.base, entry.buf.len);
      }
      seal(record, {.index = index++, .term = entry.term, .bytes = entry.buf.len, .type = entry.type});
      at += record.size();
    }
    log_.write(each.offset, records_);
  }
  unwritten_.clear();
}

void RaftLog::truncate(std::uint64_t index) {
  while (next_ > index && !places_.empty()) {
    places_.pop_back();
    --next_;
  }
}

void RaftLog::poll() {
  write_entries();
  if (syncing_.valid()) {
    if (!is_ready(syncing_)) return;
    end_sync();
  }
  if (durable_appends_ == appends_) return;
  if (!log_.slow()) {
    log_.sync();
    durable_appends_ = appends_;
    return;
  }
  syncing_appends_ = appends_;
  syncing_ = std::async(std::launch::async, [this] {
    const auto begin = std::chrono::steady_clock::now();
    log_.sync();
    return std::chrono::duration_cast<Picos>(std::chrono::steady_clock::now() - begin);
  });
}

// Waits for the sync that runs, if any.
void RaftLog::end_sync() {
  if (!syncing_.valid()) return;
  syncs_.record(syncing_.get());
  durable_appends_ = syncing_appends_;
}

void RaftLog::begin_snapshot(const raft_snapshot& snapshot, std::uint64_t trailing) {
  next_stored_ = {snapshot.index, snapshot.term};
  trailing_ = trailing;
  storing_ =
      std::async(launch_for(snapshot_), [this, &snapshot] { return snapshot_.replace(snapshot_record(snapshot)); });
}

RaftLog::Stored RaftLog::snapshot_stored() {
  if (!storing_.valid() || !is_ready(storing_)) return Stored::no;
  if (!storing_.get()) return Stored::no_space;
  stored_ = next_stored_;
  if (trailing_ == 0) {
    write_entries();
    end_sync();
    forget_entries();
  } else if (stored_.index > trailing_ && stored_.index - trailing_ >= first()) {
    compact(stored_.index - trailing_ + 1);
  }
  return Stored::yes;
}

// Rewrites the log with the entries from `keep_from` on. Without space it stays as it is.
void RaftLog::compact(std::uint64_t keep_from) {
  write_entries();
  end_sync();
  const std::size_t dropped = std::min(places_.size(), static_cast<std::size_t>(keep_from - first()));
  std::vector<std::byte> content(kRecords);
  log_.read(0, content);
  std::deque<std::uint64_t> places;
  for (std::size_t i = dropped; i < places_.size(); ++i) {
    Record head;
    log_.read(places_[i], std::as_writable_bytes(std::span(&head, 1)));
    const std::uint64_t at = content.size();
    content.resize(at + record_bytes(head.bytes));
    log_.read(places_[i], std::span(content).subspan(at));
    places.push_back(at);
  }
  if (!log_.replace(content)) return;
  places_ = std::move(places);
  end_ = content.size();
  durable_appends_ = appends_;
}

}  // namespace verbscope
