// The bytes that a stranger sends to the exchange port, one message after another, to a server whose nonce is known.
#include <span>

#include "exchange/handshake.hpp"
#include "tests/fuzz/fuzz.hpp"

using verbscope::fuzz::report;

namespace {

// The messages at the front of `bytes` as the server takes them. Throws what is wrong with the first that is.
void take_all(std::span<const std::byte> bytes) {
  verbscope::ServerHandshake server("s3cret", std::string(64, '5'));
  while (!server.terms()) {
    const std::size_t length =
        verbscope::kLengthBytes + verbscope::parse_length(bytes, verbscope::kMaxHandshakeMessage);
    const auto piece = bytes.first(std::min(length, bytes.size()));
    const verbscope::Message message = verbscope::parse_message(piece, verbscope::kMaxHandshakeMessage);
    const auto again = verbscope::encode_message(message, verbscope::kMaxMessage);
    if (verbscope::parse_message(again, verbscope::kMaxMessage).body != message.body) {
      report("a message changed when it was written and read", message.type);
    }
    const bool was_proven = server.proven();
    server.take(message);
    if (server.terms() && !was_proven) report("terms were taken from a stranger", message.type);
    bytes = bytes.subspan(piece.size());
  }
  const std::string mismatch =
      verbscope::describe_mismatch({.benchmark = "send_rate", .version = "1"}, *server.terms());
  if (mismatch.find('\n') != std::string::npos) report("a mismatch is not one line", mismatch);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  verbscope::fuzz::expect_value_or_error([&] { take_all(bytes); });
  return 0;
}
