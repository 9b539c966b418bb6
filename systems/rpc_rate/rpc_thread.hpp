// A thread of the RPC benchmarks: it keeps requests outstanding in its sessions, and answers those of its peers.
//
// Work says what the requests are (echo_work.hpp is the simplest). Each thread has an object of it:
// - Options, and Work(setup, load, options, caller); `caller` is the number of the thread,
// - kKinds: kinds of requests. A request of kind kSlowRequest may be handled by a worker thread.
// - ask(request, tag, asked): fills a request, whose first word is the tag, and returns its kind. Asked is what the
//   caller remembers of it.
// - good(asked, tag, response): whether the response is right,
// - response_bytes(): bytes of every response,
// - answer(node, request, tag, response): handles a request on this thread; returns whether it was right.
// Data path.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/histogram.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/choice.hpp"
#include "microbench/loop/request_loop.hpp"
#include "systems/rpc/endpoint.hpp"
#include "systems/rpc/fasst_endpoint.hpp"
#include "systems/rpc_rate/played_peers.hpp"
#include "systems/rpc_rate/rpc_load.hpp"

namespace verbscope {

// What the benchmarks read of a thread with an endpoint.
class RpcThread : public Workload {
 public:
  virtual std::span<const Histogram> latencies() const = 0;  // by kind of request
  virtual const Histogram& round_trips() const = 0;
  virtual bool in_background() const = 0;
  virtual std::size_t sessions() const = 0;
  virtual std::uint32_t outstanding() const = 0;
  virtual std::uint32_t recvs() const = 0;  // for packets that may be on their way to it
  virtual const RpcUse& use() const = 0;    // of the measured interval
  virtual const BatchCounts& batches() const = 0;
  virtual std::uint64_t unanswered() const = 0;
  virtual std::uint64_t repeated() const = 0;
  virtual std::uint64_t credits_lost() const = 0;  // that had not come back when the thread had all answers
};

template <class Endpoint, class Work>
class RpcThreadOn final : public WorkloadOn<RpcThreadOn<Endpoint, Work>, RpcThread> {
 public:
  // `options.round_trips` is set here. Throws Error.
  RpcThreadOn(const ThreadSetup& setup, const RpcLoad& load, const RpcOptions& options,
              const typename Work::Options& work);

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    OperationMeter meter(control, tally, goal_);
    if (options_.time_work || !std::is_same_v<N, HostNode>) endpoint_.time_work(node);
    Serving<N> serving{*this, node};
    serve(serving);
    if (workers_) workers_->watch(node);
    for (;;) {
      const bool running = role_.background ? meter.phase() != Phase::stop : meter.running();
      if (running) send_batches();
      if (played_) played_->play(transport_, running);
      int moved = workers_ ? workers_->send_finished(node, endpoint_) : 0;
      const int received = endpoint_.pass(node, tally.end);
      if (received < 0) return;
      moved += received;
      if (workers_) workers_->give(node);
      note(node, meter);
      if (!running && !tally.drained.load(std::memory_order_relaxed) && endpoint_.drained()) {
        credits_lost_ = endpoint_.credits_out();
        tally.set_drained();
        if (played_) return;  // its peers send nothing more
      }
      if (moved > 0) continue;
      if (control.quit.load(std::memory_order_relaxed)) {
        if (!endpoint_.drained()) tally.end = {.kind = EndKind::gave_up};
        return;
      }
      if (endpoint_.drained()) {
        node.idle();
      } else {
        node.idle_until(endpoint_.wake_at());
      }
    }
  }

  bool active() const override { return role_.calls || played_; }
  bool counts() const override { return active() && !role_.background; }
  std::uint64_t received() const override { return handled_; }
  std::uint64_t wrong() const override { return wrong_; }
  std::string memory() const override { return transport_.memory(); }

  std::span<const Histogram> latencies() const override { return latencies_; }
  const Histogram& round_trips() const override { return round_trips_; }
  bool in_background() const override { return role_.background; }
  std::size_t sessions() const override { return last_handled_.size() / kSessionSlots; }
  std::uint32_t outstanding() const override { return load_.outstanding; }
  std::uint32_t recvs() const override { return options_.recvs; }
  const RpcUse& use() const override { return use_; }
  const BatchCounts& batches() const override { return batches_; }
  std::uint64_t unanswered() const override { return unanswered_; }
  std::uint64_t credits_lost() const override { return credits_lost_; }
  std::uint64_t repeated() const override { return repeated_; }

 private:
  // A request that may be outstanding, with its buffers.
  struct Call {
    MessageBuffer request, response;
    std::uint64_t tag = 0;
    Picos sent{0};
    std::uint32_t batch = 0;
    std::uint8_t kind = kUsualRequest;
    [[no_unique_address]] typename Work::Asked asked{};
  };

  // The context of the handlers: the thread while it runs on a node.
  template <Node N>
  struct Serving {
    RpcThreadOn& thread;
    N& node;
  };

  static void on_done(void* self, std::uint64_t index, RpcStatus status) {
    static_cast<RpcThreadOn*>(self)->done(static_cast<std::uint32_t>(index), status);
  }
  template <Node N>
  static void on_request(void* context, const RpcRequest& request) {
    auto& [thread, node] = *static_cast<Serving<N>*>(context);
    thread.answer(node, request);
  }
  template <Node N>
  static void on_slow_request(void* context, const RpcRequest& request) {
    static_cast<Serving<N>*>(context)->thread.give_to_worker(request);
  }

  template <Node N>
  void serve(Serving<N>& serving) {
    for (std::uint8_t kind = 0; kind < Work::kKinds; ++kind) {
      if (kind == kSlowRequest && workers_) {
        endpoint_.serve(kind, &on_slow_request<N>, &serving, RequestLife::until_response);
      } else {
        endpoint_.serve(kind, &on_request<N>, &serving);
      }
    }
  }

  void open_sessions(const ThreadSetup& setup);
  void open_played(const UdAddress& to);
  void make_calls(const ThreadSetup& setup);

  void send_batches() {
    for (; !ready_.empty(); ready_.pop_back()) {
      const std::uint32_t batch = ready_.back();
      left_[batch] = load_.batch;
      for (std::uint32_t i = batch * load_.batch; i < (batch + 1) * load_.batch; ++i) send(i);
    }
  }
  // Returns the session for it.
  [[gnu::noinline]] std::uint16_t fill(Call& call) {
    call.tag = caller_ << kSequenceBits | ++sequence_;
    call.sent = endpoint_.now();
    call.kind = work_.ask(call.request, call.tag, call.asked);
    return sessions_[turn_.next()];
  }
  void send(std::uint32_t index) {
    Call& call = calls_table_[index];
    const std::uint16_t session = fill(call);  // before its members are read
    endpoint_.call(session, {.type = call.kind,
                             .request = &call.request,
                             .response = &call.response,
                             .done = &on_done,
                             .context = this,
                             .tag = index});
  }

  // Functions of their own, so that their cost can be told from the endpoint's.
  [[gnu::noinline]] void done(std::uint32_t index, RpcStatus status) {
    Call& call = calls_table_[index];
    if (status != RpcStatus::answered) {
      ++unanswered_;
    } else {
      ++fresh_;
      if (measuring_) latencies_[call.kind].record(endpoint_.now() - call.sent);
      if (!work_.good(call.asked, call.tag, call.response)) ++wrong_;
    }
    if (--left_[call.batch] == 0) ready_.push_back(call.batch);
  }

  template <Node N>
  void answer(N& node, const RpcRequest& request) {
    const std::uint64_t tag = check(request);
    MessageBuffer* const response = endpoint_.response(request.handle, work_.response_bytes());
    if (response == nullptr) return;
    if (!work_.answer(node, request, tag, *response)) [[unlikely]]
      ++wrong_;
    endpoint_.respond(request.handle);
  }
  void give_to_worker(const RpcRequest& request) {
    check(request);
    MessageBuffer* const response = endpoint_.response(request.handle, work_.response_bytes());
    if (response != nullptr) workers_->add(request, response, endpoint_.now());
  }
  // Counts a request, and returns its tag.
  [[gnu::noinline]] std::uint64_t check(const RpcRequest& request) {
    const std::uint64_t tag = request.bytes < kLeastMessage ? 0 : first_word(request.data);
    std::uint64_t& last = last_handled_[request.handle.session * kSessionSlots + request.handle.index()];
    if (tag <= last) ++repeated_;
    last = tag;
    ++handled_;
    if (!role_.calls) ++fresh_;
    return tag;
  }

  template <Node N>
  void note(N& node, OperationMeter& meter) {
    const std::uint64_t fresh = std::exchange(fresh_, 0);
    if (!counts()) return set_measuring(in_interval(meter.phase()));
    if (fresh == 0) return;
    meter.add_and_note(node, meter.phase(), fresh);
    set_measuring(meter.measuring());
  }
  // Sets the counts to 0 when an interval begins. Stores them when it ends.
  void set_measuring(bool measuring) {
    if (measuring == measuring_) return;
    measuring_ = measuring;
    if (measuring) {
      for (Histogram& latency : latencies_) latency.clear();
      round_trips_.clear();
      endpoint_.clear_counts();
      transport_.clear_batches();
    } else {
      use_ = endpoint_.use();
      batches_ = transport_.batches();
    }
  }

  RpcLoad load_;
  RpcOptions options_;
  RpcRole role_;
  std::uint64_t goal_;
  std::uint64_t caller_;  // number of this thread among those of all machines, from 1 on
  Work work_;
  std::array<Histogram, Work::kKinds> latencies_;  // of requests answered in the measured interval, by kind
  Histogram round_trips_;                          // of packets
  RpcUse use_;
  BatchCounts batches_;                      // of packets behind each doorbell, in the same time
  std::optional<PlayedPeers<Work>> played_;  // on the null device
  DatagramTransport transport_;
  MessagePool pool_;
  Endpoint endpoint_;
  std::vector<std::uint16_t> sessions_;  // in which it calls
  Choice turn_;
  std::vector<Call> calls_table_;
  std::vector<std::uint32_t> left_;          // by batch: requests without a response
  std::vector<std::uint32_t> ready_;         // batches without requests on their way
  std::vector<std::uint64_t> last_handled_;  // by session and slot: the tag of the last request
  std::uint64_t sequence_ = 0;
  std::uint64_t fresh_ = 0;  // answered since the last pass; without calls, handled
  std::uint64_t handled_ = 0, wrong_ = 0, unanswered_ = 0, repeated_ = 0, credits_lost_ = 0;
  bool measuring_ = false;
  std::optional<HandOver> workers_;  // if the machine has any
};

template <class Endpoint, class Work>
RpcThreadOn<Endpoint, Work>::RpcThreadOn(const ThreadSetup& setup, const RpcLoad& load, const RpcOptions& options,
                                         const typename Work::Options& work)
    : load_(load_of(setup, load)),
      options_(complete(options, setup, load, round_trips_)),
      role_(role_of(setup, load)),
      goal_(setup.goal),
      caller_(caller_number(setup)),
      work_(setup, load_, work, caller_),
      played_(load.played == 0 ? std::nullopt
                               : std::optional<PlayedPeers<Work>>(std::in_place, setup.lanes.front().qp, work_, load_)),
      transport_(setup, load.packet_bytes, recvs_of(setup)),
      pool_({load.packet_bytes - kPacketHeaderBytes}, &setup.pd, setup.huge_pages),
      endpoint_(transport_, pool_, options_),
      turn_(1, true, 0, 0) {
  if (load.workers_of(machine_of(setup)) > 0) {
    workers_.emplace(WorkerQueues(setup.region.bytes.data(), load.worker_queues), setup.thread, caller_);
  }
  open_sessions(setup);
  if (role_.calls) make_calls(setup);
}

template <class Endpoint, class Work>
void RpcThreadOn<Endpoint, Work>::make_calls(const ThreadSetup& setup) {
  turn_ = Choice(sessions_.size(), true, setup.operation.seed * 1'000'003 + caller_, 0);
  const std::uint32_t batches = load_.outstanding / load_.batch;
  for (std::uint32_t i = 0; i < batches * load_.batch; ++i) {
    calls_table_.push_back({.request = pool_.allocate(load_.request_bytes),
                            .response = pool_.allocate(load_.response_bytes),
                            .batch = i / load_.batch});
  }
  left_.resize(batches);
  for (std::uint32_t batch = batches; batch-- > 0;) ready_.push_back(batch);
}

// If all threads of a role serve, session p calls peer p and session `peers` + p serves it. Otherwise the machines that
// call have a session for each thread of machine 0, which serves peer p in session p.
template <class Endpoint, class Work>
void RpcThreadOn<Endpoint, Work>::open_sessions(const ThreadSetup& setup) {
  if (played_) return open_played(setup.lanes.front().peers.front().qp.address());
  const std::uint32_t machine = machine_of(setup);
  const std::vector<LanePeer> peers = peers_of(setup, load_, role_);
  const auto all = static_cast<std::uint16_t>(peers.size());
  for (const LanePeer& peer : peers) {
    const std::uint32_t theirs = peer_machine(machine, peer.node);
    if (!role_.all_serve && (!role_.calls || theirs != 0)) continue;
    const auto remote = static_cast<std::uint16_t>((role_.all_serve ? all : 0) + role_.place_at(machine, theirs));
    sessions_.push_back(endpoint_.open_client(peer.qp.address(), remote));
  }
  if (role_.calls && sessions_.empty()) {
    fail_usage(
        "--client_threads {}: thread {} has a port on which the server has no thread; expected --threads {} or more "
        "of the server, or fewer --client_threads",
        setup.topology.client_threads, setup.thread, setup.topology.ports);
  }
  const bool serves = role_.all_serve || !role_.calls;
  for (const LanePeer& peer : peers) {
    if (!serves) break;
    const std::uint32_t theirs = peer_machine(machine, peer.node);
    const auto remote = role_.all_serve ? role_.place_at(machine, theirs) : static_cast<std::uint16_t>(role_.rank);
    endpoint_.open_server(peer.qp.address(), remote);
  }
  last_handled_.resize((sessions_.size() + (serves ? peers.size() : 0)) * kSessionSlots);
}

// Both ends of a session have the same number.
template <class Endpoint, class Work>
void RpcThreadOn<Endpoint, Work>::open_played(const UdAddress& to) {
  std::uint16_t number = 0;
  for (std::uint32_t i = 0; role_.calls && i < load_.played; ++i) {
    sessions_.push_back(endpoint_.open_client(to, number++));
  }
  for (std::uint32_t i = 0; load_.serves && i < load_.played; ++i) {
    played_->call_in(endpoint_.open_server(to, number++));
  }
  last_handled_.resize(number * kSessionSlots);
}

}  // namespace verbscope
