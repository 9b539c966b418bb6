// The RPC endpoint of one thread of a service, with its sessions. Only that thread may use it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "machine/node.hpp"
#include "microbench/bench/control.hpp"
#include "systems/rpc/datagram_transport.hpp"
#include "systems/rpc/endpoint.hpp"
#include "systems/rpc/message_buffer.hpp"
#include "systems/service/management.hpp"
#include "systems/service/service_options.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

// The device of a process, which its threads share.
struct ServiceDevice {
  // Throws Error.
  ServiceDevice(Provider& provider, const ServiceOptions& options);
  Device device;
  Pd pd;
  GidChoice gid;
};

// Where a thread runs, and what it shares with the others of its process. All must outlive the thread.
struct ServicePlace {
  const ServiceDevice& device;
  const ServiceOptions& options;
  Management& management;
  std::uint32_t thread = 0;
  std::uint64_t random = 0;  // differs between processes, also those that are started again
};

class ServiceThread {
 public:
  // Creates the QP and its memory. Throws Error.
  explicit ServiceThread(const ServicePlace& place);
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;
  virtual ~ServiceThread() = default;

  // The number of this endpoint in its process.
  std::uint32_t number() const { return place_.thread; }
  // The address of the server, from the command line.
  const std::string& server() const { return place_.options.server; }

  // Requests of this type are handled by `handler`, in pass(). Each request must be answered by response() and
  // respond(), at once or later. With RequestLife::until_response its data stays until then, so that threads of the
  // service can work on it; respond() is for this thread.
  void serve(std::uint8_t type, RpcHandler handler, void* context, RequestLife life = RequestLife::until_return) {
    rpc_.serve(type, handler, context, life);
  }
  // The buffer for a response of `bytes` bytes. Null: the session is closed, and the request needs no answer.
  MessageBuffer* response(const RpcHandle& handle, std::uint32_t bytes) { return rpc_.response(handle, bytes); }
  void respond(const RpcHandle& handle) { rpc_.respond(handle); }

  // Opens a session with an endpoint of the process at `address` ("HOST" or "HOST:PORT"). Calls pass() until it is
  // open. Throws Error if the peer refuses or does not answer within --timeout.
  std::uint16_t connect(const std::string& address, std::uint32_t endpoint = 0);
  // False once the session has failed: its peer has closed it, does not answer, or has ended.
  bool is_open(std::uint16_t session) const { return rpc_.client(session).phase == ClientPhase::open; }
  // Makes a call in an open or failed session. Its continuation is called once, in pass(); the buffers must stay until
  // then. In a failed session it ends with RpcStatus::no_answer.
  void call(std::uint16_t session, const RpcCall& call) { rpc_.call(session, call); }
  // Closes a session. Calls that are not answered end with RpcStatus::no_answer. The number is not valid any more.
  void disconnect(std::uint16_t session);

  // A buffer for requests or responses of up to `capacity` bytes. Throws Error.
  MessageBuffer allocate(std::uint32_t capacity) { return pool_.allocate(capacity); }
  void free(const MessageBuffer& buffer) { pool_.free(buffer); }

  // One pass of the event loop, which calls handlers and continuations. Returns false when the process is to end.
  // Throws Error if the device fails.
  bool pass() {
    step();
    return !stopped_;
  }

  // Declares computing time of a handler or a continuation, which passes on a simulated cluster; nothing on a host.
  void compute(Picos time) { rpc_.charge(time); }
  Picos now() const { return rpc_.now(); }  // the time of the last pass
  const RpcCounts& counts() const { return rpc_.counts(); }

  // Closes all sessions of the thread and waits for the end of their calls.
  void finish();

 protected:
  virtual void step() = 0;
  template <Node N>
  void step_on(N& node) {
    if (!mailbox_.empty()) [[unlikely]]
      obey_orders();
    RunEnd end;
    const int moved = rpc_.pass(node, end);
    if (moved < 0) [[unlikely]]
      fail_pass(end);
    if (moved == 0) node.idle_until(std::min(rpc_.wake_at(), rpc_.now() + kLongestIdle));
  }

 private:
  static constexpr Picos kLongestIdle = std::chrono::microseconds(20);

  // A session as the management knows it.
  struct Link {
    PeerId peer = 0;
    SessionName own{};
    std::optional<EndName> remote{};  // none: the peer has not answered
    bool client = true;
    std::string failure{};
  };

  [[noreturn]] void fail_pass(const RunEnd& end) const;
  void obey_orders();
  void obey(const SessionOrder& order);
  void open_for(const SessionOrder& order);
  void connect_end(const SessionOrder& order);
  void lose(std::uint16_t session, const std::string& reason);
  void timed_out(std::uint16_t session);
  EndName end_name(const Link& link) const { return {place_.thread, link.own}; }
  UdAddress address_of(const Endpoint& peer);

  const ServicePlace place_;
  Mailbox& mailbox_;
  Cq cq_;
  QpOptions queues_;
  Qp qp_;
  Endpoint address_;  // of the QP
  RpcOptions options_;
  DatagramTransport transport_;
  MessagePool pool_;
  RpcEndpoint<DatagramTransport> rpc_;
  std::map<std::string, Ah> handles_;  // by the address of a port
  std::map<std::uint16_t, Link> links_;
  bool stopped_ = false;
};

template <Node N>
class ServiceThreadOn final : public ServiceThread {
 public:
  ServiceThreadOn(const ServicePlace& place, N& node) : ServiceThread(place), node_(node) {}

 private:
  void step() override { step_on(node_); }
  N& node_;
};

}  // namespace verbscope
