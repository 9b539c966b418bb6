// Messages of the out-of-band exchange and their terms, without sockets. On the wire, a message is a 4-byte big-endian
// length and that many bytes of JSON, {"type": "...", "body": ...}.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kMaxHandshakeMessage = 64 << 10;  // bytes of JSON, during the handshake
constexpr std::size_t kMaxMessage = 1 << 20;            // bytes of JSON, after it

struct Message {
  std::string type;
  Json body;
};

// Reads the length in the first 4 bytes. Throws if it is 0 or above `limit`, or if there are fewer than 4 bytes.
std::size_t parse_length(std::span<const std::byte> bytes, std::size_t limit);

// Parses a message, length included. Throws one line on anything else (too short, trailing bytes, not JSON, nested
// deeper than kMaxJsonDepth, wrong members).
Message parse_message(std::span<const std::byte> bytes, std::size_t limit);

// Encodes a message. Throws if the JSON is longer than `limit`.
std::vector<std::byte> encode_message(const Message& message, std::size_t limit);

// Makes a peer's text printable on one line: control characters escaped, at most 300 characters.
std::string printable(std::string_view text);

// The body of the message "terms": the properties of a run on which both sides must agree.
struct Terms {
  std::string benchmark;             // "send_rate"
  std::string version;               // the program's version
  std::string commit;                // commit of the sources it was built from
  bool any_build = false;            // this side accepts another version or commit
  Json parameters = Json::object();  // all other properties that must agree
};

Json to_json(const Terms& terms);
// Throws if members are missing, unknown or of a wrong type.
Terms parse_terms(const Json& body);

// Empty if the two agree; else each difference with both values, "post_list (here 16, there 4)". Another version or
// commit is a difference unless one side sets any_build.
std::string describe_mismatch(const Terms& here, const Terms& there);

}  // namespace verbscope
