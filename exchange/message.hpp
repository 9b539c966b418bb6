// The messages of the out-of-band exchange, apart from sockets: what bytes they are, what is refused, and how two
// handshakes are compared. A message on the wire is a 4-byte big-endian length and that many bytes of JSON,
// {"type": "...", "body": ...}. Everything that a stranger can send is checked here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

constexpr int kExchangeProtocol = 1;
constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kMaxHello = 64 << 10;   // bytes of JSON, before the peer is known
constexpr std::size_t kMaxMessage = 1 << 20;  // bytes of JSON, after

struct Message {
  std::string type;
  Json body;
};

// The length that the first 4 bytes announce. Throws when it is 0 or above `limit`, or there are fewer than 4 bytes.
std::size_t parse_length(std::span<const std::byte> bytes, std::size_t limit);

// The message of these bytes, length included. Throws one line on anything else (short, trailing bytes, not JSON,
// nested deeper than kMaxJsonDepth, wrong members).
Message parse_message(std::span<const std::byte> bytes, std::size_t limit);

// The bytes of a message. Throws when the JSON is longer than `limit`.
std::vector<std::byte> encode_message(const Message& message, std::size_t limit);

// The first message of each side, about itself.
struct Hello {
  std::string benchmark;             // "send_rate"
  std::string version;               // the program's version
  Json parameters = Json::object();  // everything on which both sides must agree
  std::string secret;                // per run; the client sends it, the server never does
};

Json to_json(const Hello& hello);  // adds the protocol's version; has the secret
// Throws when members are missing, unknown or of a wrong type, or when the peer speaks another protocol.
Hello parse_hello(const Json& body);

// Empty when the two agree; otherwise each differing item with both values, "post_list (here 16, there 4)".
// Secrets are not compared here.
std::string describe_mismatch(const Hello& here, const Hello& there);

// Compares secrets in a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);

// `text` of a peer made fit to print on one line: control characters escaped, at most 300 characters.
std::string printable(std::string_view text);

}  // namespace verbscope
