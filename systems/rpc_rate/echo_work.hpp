// The requests of rpc_rate, rpc_large and rpc_incast: each word of a message is a function of its tag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "machine/node.hpp"
#include "systems/rpc_rate/rpc_load.hpp"

namespace verbscope {

inline constexpr std::uint64_t kWordStep = 0x9e3779b97f4a7c15u;  // per byte
inline void fill_words(std::byte* message, std::uint32_t bytes, std::uint64_t tag) {
  std::uint64_t word = tag;
  std::uint32_t at = 0;
  for (; at + 8 <= bytes; at += 8, word += 8 * kWordStep) std::memcpy(message + at, &word, 8);
  if (at < bytes) std::memcpy(message + at, &word, bytes - at);
}
inline bool words_good(const std::byte* message, std::uint32_t bytes, std::uint64_t tag) {
  std::uint64_t wrong = 0, word = tag;
  std::uint32_t at = 0;
  for (; at + 8 <= bytes; at += 8, word += 8 * kWordStep) wrong |= first_word(message + at) ^ word;
  return wrong == 0 && (at == bytes || std::memcmp(message + at, &word, bytes - at) == 0);
}

class EchoWork {
 public:
  struct Options {
    std::uint32_t slow_percent = 0;
    Nanos handler_time{0};  // of slow requests
    bool has_quick() const { return slow_percent > 0 && slow_percent < 100; }
  };
  struct Asked {};
  static constexpr std::uint8_t kKinds = 2;

  EchoWork(const ThreadSetup&, const RpcLoad& load, const Options& options, std::uint64_t /*caller*/)
      : request_bytes_(load.request_bytes), response_bytes_(load.response_bytes), options_(options) {}

  std::uint8_t ask(MessageBuffer& request, std::uint64_t tag, Asked&) const {
    request.bytes = request_bytes_;
    fill_words(request.data, request_bytes_, tag);
    const std::uint64_t call = tag & ((std::uint64_t{1} << kSequenceBits) - 1);
    const std::uint64_t percent = options_.slow_percent;
    return percent > 0 && call * percent % 100 < percent ? kSlowRequest : kUsualRequest;
  }
  bool good(const Asked&, std::uint64_t tag, const MessageBuffer& response) const {
    return response.bytes == response_bytes_ && words_good(response.data, response.bytes, tag | kResponseMark);
  }

  std::uint32_t response_bytes() const { return response_bytes_; }
  template <Node N>
  bool answer(N& node, const RpcRequest& request, std::uint64_t tag, MessageBuffer& response) const {
    if (request.type == kSlowRequest) [[unlikely]]
      spend(node, options_.handler_time);
    // The request must not have changed while it was handled.
    const bool good = request.bytes == request_bytes_ && words_good(request.data, request.bytes, tag);
    fill_words(response.data, response.bytes, tag | kResponseMark);
    return good;
  }

 private:
  // Declares the time on a simulated machine, and spins on a host.
  template <Node N>
  static void spend(N& node, Nanos time) {
    const Picos until = node.now() + time;
    node.compute(time);
    while (node.now() < until) cpu_relax();
  }

  std::uint32_t request_bytes_, response_bytes_;
  Options options_;
};

}  // namespace verbscope
