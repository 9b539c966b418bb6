// A thread of the RPC benchmarks: it keeps requests outstanding in its sessions, and answers those of its peers.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/histogram.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/choice.hpp"
#include "microbench/loop/request_loop.hpp"
#include "systems/rpc/datagram_transport.hpp"
#include "systems/rpc/endpoint.hpp"
#include "systems/rpc/fasst_endpoint.hpp"
#include "systems/rpc/workers.hpp"
#include "systems/rpc_rate/played_peers.hpp"

namespace verbscope {

struct RpcLoad {
  bool all_serve = true;               // every machine calls and serves; otherwise machine 0 serves the others
  bool serves = true;                  // false: on the null device, where only the played peers serve
  std::uint32_t played = 0;            // on the null device: peers of each thread
  std::uint32_t background_bytes = 0;  // of messages of the last thread of each client, to those of others; 0: none
  std::uint32_t batch = 3;         // requests that are sent together, and must all be answered before the next batch
  std::uint32_t outstanding = 60;  // requests of a thread: a multiple of `batch`
  std::uint32_t request_bytes = 32;
  std::uint32_t response_bytes = 32;
  std::uint32_t packet_bytes = 1024;  // header and data
  // Slow requests: their share, the time of their handlers, and the threads of each machine that run them.
  std::uint32_t slow_percent = 0;
  Nanos handler_time{0};
  WorkerQueues::Shape worker_queues{};  // 0 workers: the thread of the endpoint

  bool has_quick() const { return slow_percent > 0 && slow_percent < 100; }
  bool slow(std::uint64_t call) const { return slow_percent > 0 && call * slow_percent % 100 < slow_percent; }
};
inline constexpr std::uint8_t kUsualRequest = 0, kSlowRequest = 1;  // types

// The words of a message are a function of its tag, the first of them.
inline constexpr std::uint64_t kResponseMark = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kWordStep = 0x9e3779b97f4a7c15u;  // per byte
inline constexpr std::uint32_t kLeastMessage = 8;                // bytes: the tag
inline std::uint64_t first_word(const std::byte* message) {
  std::uint64_t word;
  std::memcpy(&word, message, sizeof word);
  return word;
}
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

// RECVs of a queue that are consumed, and wait to be posted again with a whole list: at most this many.
constexpr std::uint32_t unposted_recvs(const Operation& operation) {
  return DatagramTransport::recv_list(operation) - 1;
}

// The place of a thread among those that call and serve each other.
struct RpcRole {
  bool background = false;
  std::uint32_t first_machine = 0;  // machines below it have no thread of this role
  std::uint32_t members = 1;        // threads of each machine with this role that use the same port
  std::uint32_t rank = 0;           // of this thread among them
  bool all_serve = true;
};

// What the benchmarks read of a thread with an endpoint.
class RpcThread : public Workload {
 public:
  virtual const Histogram& latency() const = 0;
  virtual const Histogram& quick_latency() const = 0;  // of requests that are not slow
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

template <class Endpoint>
class RpcThreadOn final : public WorkloadOn<RpcThreadOn<Endpoint>, RpcThread> {
 public:
  // `options.round_trips` is set here. Throws Error.
  RpcThreadOn(const ThreadSetup& setup, const RpcLoad& load, const RpcOptions& options);

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    OperationMeter meter(control, tally, goal_);
    if (options_.time_work || !std::is_same_v<N, HostNode>) endpoint_.time_work(node);
    spins_ = std::is_same_v<N, HostNode>;
    if (workers_) workers_->responses(endpoint_number_).watch(node);
    for (;;) {
      const bool running = role_.background ? meter.phase() != Phase::stop : meter.running();
      if (running) send_batches();
      if (played_) played_->play(transport_, running);
      int moved = workers_ ? send_finished(node) : 0;
      const int received = endpoint_.pass(node, tally.end);
      if (received < 0) return;
      moved += received;
      if (workers_) hand_over(node);
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

  bool active() const override { return calls_ || played_; }
  bool counts() const override { return active() && !role_.background; }
  std::uint64_t received() const override { return handled_; }
  std::uint64_t wrong() const override { return wrong_; }
  std::string memory() const override { return transport_.memory(); }

  const Histogram& latency() const override { return latency_; }
  const Histogram& quick_latency() const override { return quick_latency_; }
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
    Picos asked{0};
    std::uint32_t batch = 0;
    bool slow = false;
  };

  static void on_done(void* self, std::uint64_t index, RpcStatus status) {
    static_cast<RpcThreadOn*>(self)->done(static_cast<std::uint32_t>(index), status);
  }
  static void on_request(void* self, const RpcRequest& request) { static_cast<RpcThreadOn*>(self)->answer(request); }
  static void on_slow_request(void* self, const RpcRequest& request) {
    static_cast<RpcThreadOn*>(self)->answer_slowly(request);
  }

  void open_sessions(const ThreadSetup& setup);
  void open_played(const UdAddress& to);
  void make_calls(const ThreadSetup& setup);
  void serve_slow_requests(const ThreadSetup& setup);

  void send_batches() {
    for (; !ready_.empty(); ready_.pop_back()) {
      const std::uint32_t batch = ready_.back();
      left_[batch] = load_.batch;
      for (std::uint32_t i = batch * load_.batch; i < (batch + 1) * load_.batch; ++i) send(i);
    }
  }
  // Returns the session for it.
  [[gnu::noinline]] std::uint16_t fill(Call& call) {
    call.tag = caller_ << 40 | ++sequence_;
    call.asked = endpoint_.now();
    call.slow = load_.slow(sequence_);
    call.request.bytes = load_.request_bytes;
    fill_words(call.request.data, load_.request_bytes, call.tag);
    return sessions_[turn_.next()];
  }
  void send(std::uint32_t index) {
    Call& call = calls_table_[index];
    const std::uint16_t session = fill(call);  // before its members are read
    endpoint_.call(session, {.type = call.slow ? kSlowRequest : kUsualRequest,
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
      if (measuring_) {
        const Picos latency = endpoint_.now() - call.asked;
        latency_.record(latency);
        if (!call.slow && load_.has_quick()) [[unlikely]]
          quick_latency_.record(latency);
      }
      if (call.response.bytes != load_.response_bytes ||
          !words_good(call.response.data, call.response.bytes, call.tag | kResponseMark)) {
        ++wrong_;
      }
    }
    if (--left_[call.batch] == 0) ready_.push_back(call.batch);
  }

  void answer(const RpcRequest& request) {
    const std::uint64_t tag = check(request);
    MessageBuffer* const response = endpoint_.response(request.handle, load_.response_bytes);
    if (response == nullptr) return;
    fill_words(response->data, response->bytes, tag | kResponseMark);
    endpoint_.respond(request.handle);
  }
  // By a worker, or at once.
  void answer_slowly(const RpcRequest& request) {
    if (!workers_) {
      spend_handler_time();
      return answer(request);
    }
    check(request);
    MessageBuffer* const response = endpoint_.response(request.handle, load_.response_bytes);
    if (response != nullptr) handed_over_.push_back({request, response, endpoint_number_});
  }
  // Counts a request, and returns its tag.
  [[gnu::noinline]] std::uint64_t check(const RpcRequest& request) {
    const std::uint64_t tag = request.bytes < kLeastMessage ? 0 : first_word(request.data);
    if (request.bytes != load_.request_bytes || !words_good(request.data, request.bytes, tag)) ++wrong_;
    std::uint64_t& last = last_handled_[request.handle.session * kSessionSlots + request.handle.index()];
    if (tag <= last) ++repeated_;
    last = tag;
    ++handled_;
    if (!calls_) ++fresh_;
    return tag;
  }
  void spend_handler_time() {
    if (!spins_) return endpoint_.charge(load_.handler_time);
    const Picos until = TscClock::now() + load_.handler_time;
    while (TscClock::now() < until) cpu_relax();
  }

  // Gives the slow requests of the last pass to workers at random.
  template <Node N>
  void hand_over(N& node) {
    for (const WorkerRequest& work : handed_over_) workers_->requests(worker_turn_.next()).push(node, work);
    handed_over_.clear();
  }
  // Sends the responses that workers have finished. Returns their number.
  template <Node N>
  int send_finished(N& node) {
    int count = 0;
    node.poll_memory();
    for (RpcHandle handle; workers_->responses(endpoint_number_).pop(node, handle); ++count) endpoint_.respond(handle);
    return count;
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
      latency_.clear();
      quick_latency_.clear();
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
  bool calls_;
  Histogram latency_;        // of requests answered in the measured interval
  Histogram quick_latency_;  // of those that are not slow, if some are
  Histogram round_trips_;    // of packets
  RpcUse use_;
  BatchCounts batches_;                // of packets behind each doorbell, in the same time
  std::optional<PlayedPeers> played_;  // on the null device
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
  bool spins_ = false;                   // for the time of a handler, instead of declaring it
  std::optional<WorkerQueues> workers_;  // of the machine
  std::uint32_t endpoint_number_ = 0;    // of this thread, for them
  Choice worker_turn_;
  std::vector<WorkerRequest> handed_over_;  // for workers, after this pass
};

using ErpcThread = RpcThreadOn<RpcEndpoint<DatagramTransport>>;
using FasstThread = RpcThreadOn<FasstEndpoint<DatagramTransport>>;
extern template class RpcThreadOn<RpcEndpoint<DatagramTransport>>;
extern template class RpcThreadOn<FasstEndpoint<DatagramTransport>>;

}  // namespace verbscope
