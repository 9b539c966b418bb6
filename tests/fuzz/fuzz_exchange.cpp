// The bytes that a stranger sends to the exchange port: a message, and in it a hello.
#include <span>

#include "exchange/message.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  verbscope::fuzz::expect_value_or_error([&] {
    const verbscope::Message message = verbscope::parse_message(bytes, verbscope::kMaxHello);
    const auto again = verbscope::encode_message(message, verbscope::kMaxMessage);
    if (verbscope::parse_message(again, verbscope::kMaxMessage).body != message.body) {
      verbscope::fuzz::report("a message changed when it was written and read", message.type);
    }
    const verbscope::Hello hello = verbscope::parse_hello(message.body);
    const std::string mismatch = verbscope::describe_mismatch({.benchmark = "send_rate", .version = "1"}, hello);
    if (mismatch.find('\n') != std::string::npos) verbscope::fuzz::report("a mismatch is not one line", mismatch);
  });
  return 0;
}
