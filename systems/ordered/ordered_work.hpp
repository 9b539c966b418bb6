// The requests of ordered_kv: GETs, PUTs, and SCANs, which sum the values of the next keys (eRPC, NSDI 2019, section
// 7.2, with Masstree). A client thread has a Caller, a thread of the server the map. Data path.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "systems/ordered/caller.hpp"
#include "systems/ordered/ordered_map.hpp"

namespace verbscope::ordered {

class OrderedWork {
 public:
  struct Options {
    Mix mix;
    std::shared_ptr<const KeyTable> keys;  // of callers; null at the server
    std::shared_ptr<OrderedMap> map;       // of the server; null at callers
  };
  using Asked = ordered::Asked;
  static constexpr std::uint8_t kKinds = 3;

  OrderedWork(const ThreadSetup& setup, const RpcLoad&, const Options& options, std::uint64_t /*caller*/)
      : map_(options.map), thread_(setup.thread) {
    if (!options.keys) return;
    const std::uint32_t writers = setup.topology.all_client_threads();
    const std::uint32_t number = setup.node * setup.topology.client_threads + setup.thread;
    caller_.emplace(options.keys, options.mix, Caller::Place{writers, number % writers}, setup.operation.seed);
  }

  std::uint8_t ask(MessageBuffer& message, std::uint64_t tag, Asked& asked) {
    const Request request = caller_->ask(tag, asked);
    std::memcpy(message.data, &request, sizeof request);
    message.bytes = sizeof request;
    return asked.kind;
  }
  bool good(const Asked& asked, std::uint64_t tag, const MessageBuffer& message) {
    Response response;
    if (message.bytes != sizeof response) return false;
    std::memcpy(&response, message.data, sizeof response);
    return caller_->good(asked, tag, response);
  }

  static constexpr std::uint32_t response_bytes() { return kMessageBytes; }
  template <Node N>
  bool answer(N& node, const RpcRequest& message, std::uint64_t tag, MessageBuffer& buffer) {
    Response response{.tag = tag | kResponseMark};
    const bool whole = message.bytes == sizeof(Request);
    if (whole) [[likely]] {
      Request request;
      std::memcpy(&request, message.data, sizeof request);
      execute(node, message.type, request, response);
    }
    std::memcpy(buffer.data, &response, sizeof response);
    return whole;
  }

 private:
  template <Node N>
  void execute(N& node, std::uint8_t kind, const Request& request, Response& response) {
    if (kind == kGet) [[likely]] {
      const std::optional<std::uint64_t> value = map_->get(node, thread_, request.key);
      if (value) response = {response.tag, 1, request.key, *value};
    } else if (kind == kScan) {
      const OrderedMap::Sum sum = map_->scan(node, thread_, request.key, request.length);
      response = {response.tag, sum.count, sum.keys, sum.values};
    } else {
      map_->put(node, thread_, request.key, request.value);
      response = {response.tag, 1, request.key, request.value};
    }
  }

  std::shared_ptr<OrderedMap> map_;
  std::uint32_t thread_;  // number of this thread for the map
  std::optional<Caller> caller_;
};

}  // namespace verbscope::ordered
