// The messages of C-Raft as bytes. Both ends have the same byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "systems/raft/c_raft.hpp"

namespace verbscope {

// What a message says besides its fields in the library.
struct MessageNotes {
  bool probe = false;  // a heartbeat of RaftIo, or the answer to one: not for the library of the leader
  bool full = false;   // a result: the sender's log has no space
  // In the order of sending, also over restarts of the sender. Results have none.
  std::uint64_t number = 0;
};

std::size_t encoded_bytes(const raft_configuration& configuration);
std::byte* encode(const raft_configuration& configuration, std::byte* to);
// Reads a configuration from the beginning of `from`, and cuts it off. False: it is none.
bool decode(std::span<const std::byte>& from, raft_configuration& configuration);

// Bytes of a message that encode() writes.
std::size_t encoded_bytes(const raft_message& message);
// Writes a message of the replica `sender`. Copies the data of entries once.
void encode(const raft_message& message, raft_id sender, const MessageNotes& notes, std::byte* to);

struct DecodedMessage {
  raft_message message{};  // owns entries, configuration and data, as C-Raft takes them over; without the address
  MessageNotes notes;
};
// The replica that has sent the message; 0 if these bytes are none.
raft_id sender_of(std::span<const std::byte> message);
// None: these bytes are not a message.
std::optional<DecodedMessage> decode(std::span<const std::byte> from);
// Frees what the library has not taken over.
void release(raft_message& message);

}  // namespace verbscope
