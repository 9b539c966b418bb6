#include "systems/raft/raft_message.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "common/units.hpp"

namespace verbscope {

namespace {

constexpr unsigned kProbe = 1;
constexpr unsigned kFull = 2;
constexpr unsigned kGranted = 4;
constexpr unsigned kDisrupt = 8;
constexpr unsigned kPreVote = 16;
constexpr unsigned kPreVoteUnknown = 32;

// Results are short, so that an adapter can send them inline. Other messages have a Tail after the head. With an entry
// of the store they fit into a WQE that BlueFlame can write.
struct Head {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint16_t sender = 0;
  std::uint32_t entries = 0;
  std::uint64_t term = 0;
  std::uint64_t words[2] = {};
};
struct EntryHead {
  std::uint64_t term = 0;
  std::uint32_t bytes = 0;
  std::uint16_t type = 0;
  std::uint16_t unused = 0;
};
struct ServerHead {
  std::uint64_t id = 0;
  std::uint32_t role = 0;
  std::uint32_t address_bytes = 0;
};
struct Tail {
  std::uint64_t word = 0;
  std::uint64_t number = 0;
};
constexpr std::size_t kMostServers = 64;

bool has_tail(unsigned type) {
  return type != RAFT_IO_APPEND_ENTRIES_RESULT;
}

template <class T>
std::byte* put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}
std::byte* put(std::byte* to, const void* bytes, std::size_t count) {
  if (count > 0) std::memcpy(to, bytes, count);
  return to + count;
}
template <class T>
bool take(std::span<const std::byte>& from, T& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return true;
}

bool decode_entries(std::span<const std::byte> from, std::uint32_t count, raft_append_entries& message) {
  if (count == 0) return from.empty();
  if (from.size() / sizeof(EntryHead) < count) return false;
  std::span<const std::byte> data = from.subspan(count * sizeof(EntryHead));
  std::byte* batch = raft_array<std::byte>(data.size() + 1);  // malloc(0) may be null
  raft_entry* const entries = raft_array<raft_entry>(count);
  put(batch, data.data(), data.size());
  message.entries = entries;
  message.n_entries = count;
  std::size_t offset = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    EntryHead head;
    take(from, head);
    entries[i] = {head.term, head.type, {batch + offset, head.bytes}, batch};
    if (head.type < RAFT_COMMAND || head.type > RAFT_CHANGE || head.bytes > data.size() - offset) return false;
    offset += head.bytes;
  }
  return offset == data.size();
}

bool decode_snapshot(std::span<const std::byte> from, raft_install_snapshot& message) {
  if (!decode(from, message.conf)) return false;
  message.data = {raft_array<std::byte>(from.size() + 1), from.size()};
  put(static_cast<std::byte*>(message.data.base), from.data(), from.size());
  return true;
}

bool decode_body(const Head& head, std::span<const std::byte> from, DecodedMessage& decoded) {
  raft_message& m = decoded.message;
  Tail tail;
  if (has_tail(head.type) && !take(from, tail)) return false;
  decoded.notes.number = tail.number;
  switch (head.type) {
    case RAFT_IO_REQUEST_VOTE:
      m.request_vote = {head.term,
                        head.words[0],
                        head.words[1],
                        tail.word,
                        (head.flags & kDisrupt) != 0,
                        (head.flags & kPreVote) != 0};
      return from.empty();
    case RAFT_IO_REQUEST_VOTE_RESULT:
      m.request_vote_result = {
          head.term, (head.flags & kGranted) != 0,
          (head.flags & kPreVoteUnknown) != 0 ? raft_tribool_unknown : TO_RAFT_TRIBOOL((head.flags & kPreVote) != 0)};
      return from.empty();
    case RAFT_IO_APPEND_ENTRIES:
      m.append_entries = {head.term, head.words[0], head.words[1], tail.word, nullptr, 0};
      return decode_entries(from, head.entries, m.append_entries);
    case RAFT_IO_APPEND_ENTRIES_RESULT:
      m.append_entries_result = {head.term, head.words[0], head.words[1]};
      return from.empty();
    case RAFT_IO_INSTALL_SNAPSHOT:
      m.install_snapshot = {head.term, head.words[0], head.words[1], {}, tail.word, {}};
      return decode_snapshot(from, m.install_snapshot);
    case RAFT_IO_TIMEOUT_NOW:
      m.timeout_now = {head.term, head.words[0], head.words[1]};
      return from.empty();
    default:
      return false;
  }
}

}  // namespace

std::size_t encoded_bytes(const raft_configuration& configuration) {
  std::size_t bytes = sizeof(std::uint64_t);
  for (unsigned i = 0; i < configuration.n; ++i) {
    bytes += sizeof(ServerHead) + std::strlen(configuration.servers[i].address);
  }
  return bytes;
}

std::byte* encode(const raft_configuration& configuration, std::byte* to) {
  to = put(to, std::uint64_t{configuration.n});
  for (unsigned i = 0; i < configuration.n; ++i) {
    const raft_server& server = configuration.servers[i];
    const auto length = static_cast<std::uint32_t>(std::strlen(server.address));
    to = put(to, ServerHead{server.id, static_cast<std::uint32_t>(server.role), length});
    to = put(to, server.address, length);
  }
  return to;
}

bool decode(std::span<const std::byte>& from, raft_configuration& configuration) {
  raft_configuration_init(&configuration);
  std::uint64_t count = 0;
  if (!take(from, count) || count > kMostServers) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    ServerHead head;
    if (!take(from, head) || head.address_bytes > from.size() || head.id == 0) return false;
    const std::string address(reinterpret_cast<const char*>(from.data()), head.address_bytes);
    from = from.subspan(head.address_bytes);
    if (raft_configuration_add(&configuration, head.id, address.c_str(), static_cast<int>(head.role)) != 0) {
      return false;
    }
  }
  return true;
}

std::size_t encoded_bytes(const raft_message& message) {
  std::size_t bytes = sizeof(Head) + (has_tail(message.type) ? sizeof(Tail) : 0);
  if (message.type == RAFT_IO_APPEND_ENTRIES) {
    for (unsigned i = 0; i < message.append_entries.n_entries; ++i) {
      bytes += sizeof(EntryHead) + message.append_entries.entries[i].buf.len;
    }
  } else if (message.type == RAFT_IO_INSTALL_SNAPSHOT) {
    bytes += encoded_bytes(message.install_snapshot.conf) + message.install_snapshot.data.len;
  }
  return bytes;
}

void encode(const raft_message& message, raft_id sender, const MessageNotes& notes, std::byte* to) {
  Head head{.type = static_cast<std::uint8_t>(message.type), .sender = static_cast<std::uint16_t>(sender)};
  unsigned flags = (notes.probe ? kProbe : 0u) | (notes.full ? kFull : 0u);
  std::byte* body = to + sizeof head;
  const auto set = [&](std::uint64_t term, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    head.term = term;
    head.words[0] = a;
    head.words[1] = b;
    if (has_tail(message.type)) body = put(body, Tail{c, notes.number});
  };
  switch (message.type) {
    case RAFT_IO_REQUEST_VOTE: {
      const raft_request_vote& m = message.request_vote;
      set(m.term, m.candidate_id, m.last_log_index, m.last_log_term);
      flags |= (m.disrupt_leader ? kDisrupt : 0u) | (m.pre_vote ? kPreVote : 0u);
      break;
    }
    case RAFT_IO_REQUEST_VOTE_RESULT: {
      const raft_request_vote_result& m = message.request_vote_result;
      set(m.term, 0, 0, 0);
      flags |= (m.vote_granted ? kGranted : 0u) | (m.pre_vote == raft_tribool_true ? kPreVote : 0u) |
               (m.pre_vote == raft_tribool_unknown ? kPreVoteUnknown : 0u);
      break;
    }
    case RAFT_IO_APPEND_ENTRIES: {
      const raft_append_entries& m = message.append_entries;
      set(m.term, m.prev_log_index, m.prev_log_term, m.leader_commit);
      head.entries = m.n_entries;
      std::byte* data = body + m.n_entries * sizeof(EntryHead);
      for (unsigned i = 0; i < m.n_entries; ++i) {
        const raft_entry& entry = m.entries[i];
        put(body + i * sizeof(EntryHead),
            EntryHead{.term = entry.term, .bytes = static_cast<std::uint32_t>(entry.buf.len), .type = entry.type});
        if (entry.type == RAFT_BARRIER) {  // the library does not set its data
          std::memset(data, 0, entry.buf.len);
          data += entry.buf.len;
        } else {
          data = put(data, entry.buf.base, entry.buf.len);
        }
      }
      break;
    }
    case RAFT_IO_APPEND_ENTRIES_RESULT: {
      const raft_append_entries_result& m = message.append_entries_result;
      set(m.term, m.rejected, m.last_log_index, 0);
      break;
    }
    case RAFT_IO_INSTALL_SNAPSHOT: {
      const raft_install_snapshot& m = message.install_snapshot;
      set(m.term, m.last_index, m.last_term, m.conf_index);
      put(encode(m.conf, body), m.data.base, m.data.len);
      break;
    }
    default: {
      const raft_timeout_now& m = message.timeout_now;
      set(m.term, m.last_log_index, m.last_log_term, 0);
    }
  }
  head.flags = static_cast<std::uint8_t>(flags);
  put(to, head);
}

raft_id sender_of(std::span<const std::byte> message) {
  Head head;
  return take(message, head) ? head.sender : 0;
}

std::optional<DecodedMessage> decode(std::span<const std::byte> from) {
  Head head;
  if (!take(from, head) || head.sender == 0) return std::nullopt;
  DecodedMessage decoded;
  decoded.message.type = head.type;
  decoded.message.server_id = head.sender;
  decoded.notes = {.probe = (head.flags & kProbe) != 0, .full = (head.flags & kFull) != 0};
  if (decode_body(head, from, decoded)) return decoded;
  release(decoded.message);
  return std::nullopt;
}

void release(raft_message& message) {
  if (message.type == RAFT_IO_APPEND_ENTRIES) {
    raft_append_entries& m = message.append_entries;
    if (m.entries != nullptr) raft_free(m.entries[0].batch);
    raft_free(std::exchange(m.entries, nullptr));
    m.n_entries = 0;
  } else if (message.type == RAFT_IO_INSTALL_SNAPSHOT) {
    raft_install_snapshot& m = message.install_snapshot;
    raft_configuration_close(&m.conf);
    raft_free(m.data.base);
    m.conf = {};
    m.data = {};
  }
}

}  // namespace verbscope
