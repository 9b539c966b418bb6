// The RPC endpoint of one thread of a service, with its sessions. Only that thread may use it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/hash.hpp"
#include "machine/node.hpp"
#include "microbench/bench/control.hpp"
#include "systems/rpc/datagram_transport.hpp"
#include "systems/rpc/endpoint.hpp"
#include "systems/rpc/message_buffer.hpp"
#include "systems/service/management.hpp"
#include "systems/service/service_interval.hpp"
#include "systems/service/service_options.hpp"
#include "systems/service/service_workers.hpp"
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
  ServiceInterval& interval;
  const ServiceWorkers* workers = nullptr;  // null: none
  std::uint32_t machine = 0;
  std::uint32_t thread = 0;
  std::uint64_t random = 0;  // differs between threads, also those of a process that is started again
};

// failed: the peer has closed the session or refused it, does not answer, or has ended.
enum class SessionState : std::uint8_t { opening, open, failed };

class ServiceThread {
 public:
  // Creates the QP and its memory. Throws Error.
  explicit ServiceThread(const ServicePlace& place);
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;
  virtual ~ServiceThread() = default;

  // The number of this endpoint in its process.
  std::uint32_t number() const { return place_.thread; }
  // The number of the simulated machine; 0 on a device.
  std::uint32_t machine() const { return place_.machine; }
  // The addresses of the servers: the host argument of a client, or the names of the simulated machines. Empty at a
  // server on a device.
  const std::vector<std::string>& servers() const { return place_.options.servers; }
  // The first of them.
  const std::string& server() const { return servers().at(0); }

  // Requests of this type are handled by `handler`, in pass(). Each request must be answered by response() and
  // respond(), at once or later.
  void serve(std::uint8_t type, RpcHandler handler, void* context) { rpc_.serve(type, handler, context); }
  // Requests of this type are handled by `handler` on a worker thread, or in pass() with --workers 0. pass() sends its
  // response of up to `response_bytes` bytes. `context` must stay until pass() returns false.
  void serve_by_worker(std::uint8_t type, WorkHandler handler, void* context, std::uint32_t response_bytes);
  // The buffer for a response of `bytes` bytes. Null: the session is closed, and the request needs no answer.
  MessageBuffer* response(const RpcHandle& handle, std::uint32_t bytes) { return rpc_.response(handle, bytes); }
  void respond(const RpcHandle& handle) { rpc_.respond(handle); }

  // Begins to open a session with an endpoint of the server at `address` ("HOST", "HOST:PORT", or the name of a
  // simulated machine), and returns its number at once. It fails if the peer refuses or does not answer within
  // --timeout. Throws Error for an invalid address, or if the RECVs do not suffice for another session.
  std::uint16_t open(const std::string& address, std::uint32_t endpoint = 0);
  SessionState state(std::uint16_t session) const;
  // Why the session failed; empty before.
  const std::string& failure(std::uint16_t session) const { return links_.at(session).failure; }
  // open(), and pass() until the session is open. Throws Error if it fails.
  std::uint16_t connect(const std::string& address, std::uint32_t endpoint = 0);
  // Makes a call in a session. Its continuation is called once, in pass(); the buffers must stay until then. The call
  // waits while the session opens. In a failed session it ends with RpcStatus::no_answer.
  void call(std::uint16_t session, const RpcCall& call) { rpc_.call(session, call); }
  // Closes a session. Calls that are not answered end with RpcStatus::no_answer. The number is not valid any more.
  void disconnect(std::uint16_t session);

  // A buffer for requests or responses of up to `capacity` bytes. Throws Error.
  MessageBuffer allocate(std::uint32_t capacity) { return pool_.allocate(capacity); }
  void free(const MessageBuffer& buffer) { pool_.free(buffer); }

  // One pass of the event loop, which calls handlers and continuations. Returns false when the process is to end, and
  // no worker has a request of this thread. Throws Error if the device fails. It does not return if the simulated
  // machine is killed (SimFaults).
  bool pass() {
    step();
    return !stopped_ || (workers_ && workers_->given() > 0);
  }
  // The next pass waits no longer than until `time`. Without this it waits up to 20 us on a simulated cluster if
  // nothing arrives; on a host no pass waits.
  void wake_by(Picos time) { wake_by_ = std::min(wake_by_, time); }

  // A random number, on a simulated cluster from --seed.
  std::uint64_t random() { return mix(random_ += kMixStep); }

  // Declares computing time of a handler or a continuation, which passes on a simulated cluster; nothing on a host.
  void compute(Picos time) { rpc_.charge(time); }
  Picos now() const { return rpc_.now(); }  // the time at which the last pass began
  const RpcCounts& counts() const { return rpc_.counts(); }
  // Time from the end of a pass to the end of the next one, of all passes that have taken or sent a packet.
  Picos busy() const { return busy_; }
  Picos timeout() const { return place_.options.timeout; }  // --timeout

  // The measured interval of the record, by default the whole run. It lasts from the last begin of a thread to the
  // first end after it.
  void begin_interval() { place_.interval.begin(now()); }
  void end_interval() { place_.interval.end(now()); }

  // Closes all sessions of the thread, and waits until no queue has their packets. Calls that are not answered end
  // without their continuations, whose contexts may be gone.
  void finish();

 protected:
  virtual void step() = 0;
  template <Node N>
  void watch_workers(N& node) {
    if (workers_) workers_->watch(node);
  }
  template <Node N>
  void step_on(N& node) {
    if (!mailbox_.empty()) [[unlikely]]
      obey_orders();
    RunEnd end;
    int moved = workers_ ? workers_->send_finished(node, rpc_) : 0;
    const int received = rpc_.pass(node, end);
    if (received < 0) [[unlikely]]
      fail_pass(end);
    moved += received;
    if (workers_ && !stopped_) workers_->give(node);
    if (const std::uint64_t sent = rpc_.counts().packets_sent; moved > 0 || sent != std::exchange(sent_, sent)) {
      busy_ += node.now() - idle_until_;
    }
    if (rpc_.now() >= ask_at_) [[unlikely]]
      ask_peers();
    const Picos wake_by = std::exchange(wake_by_, Picos::max());
    if (moved == 0) node.idle_until(std::min({rpc_.wake_at(), wake_by, rpc_.now() + kLongestIdle}));
    idle_until_ = node.now();
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
    std::uint32_t endpoint = 0;     // of the peer, which a client's end asks for a session
    Picos ask_at{0};                // when it asks again
    Picos deadline = Picos::max();  // for the answer; set with the first question
  };

  // The context of the endpoint's handlers for requests of serve_by_worker().
  struct WorkFor {
    ServiceThread& thread;
    WorkType type;
  };
  static void give_to_worker(void* work, const RpcRequest& request);
  static void work_here(void* work, const RpcRequest& request);

  [[noreturn]] void fail_pass(const RunEnd& end) const;
  void obey_orders();
  void ask_peers();
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
  std::optional<HandOver> workers_;    // if the process has any
  std::deque<WorkFor> work_types_;     // those of requests that workers have, too
  std::map<std::string, Ah> handles_;  // by the address of a port
  std::map<std::uint16_t, Link> links_;
  Picos ask_at_ = Picos::max();  // when a session that is not open asks its peer, or fails
  Picos wake_by_ = Picos::max();
  std::uint64_t random_;
  Picos idle_until_{0};  // end of the last pass
  Picos busy_{0};
  std::uint64_t sent_ = 0;  // packets, until the last pass
  bool stopped_ = false;
};

template <Node N>
class ServiceThreadOn final : public ServiceThread {
 public:
  ServiceThreadOn(const ServicePlace& place, N& node) : ServiceThread(place), node_(node) { watch_workers(node); }

 private:
  void step() override { step_on(node_); }
  N& node_;
};

}  // namespace verbscope
