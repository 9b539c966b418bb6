#include "systems/raft/replica_peers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kEmpty = 8;  // bytes of a response without a result

}  // namespace

ReplicaPeers::ReplicaPeers(ServiceThread& thread, std::uint8_t type, raft_id own,
                           const std::vector<std::string>& addresses, Picos patience)
    : thread_(thread), type_(type), own_(own), patience_(patience) {
  for (const std::string& address : addresses) peers_.emplace_back().address = address;
}

void ReplicaPeers::serve(RaftIo& io) {
  io_ = &io;
  thread_.serve(
      type_, [](void* peers, const RpcRequest& request) { static_cast<ReplicaPeers*>(peers)->take(request); }, this);
}

ReplicaPeers::Call& ReplicaPeers::new_call() {
  if (free_.empty()) {
    Call& call = calls_.emplace_back();
    call.peers = this;
    call.response = thread_.allocate(kResponse);
    free_.push_back(&call);
  }
  Call& call = *free_.back();
  free_.pop_back();
  return call;
}

std::byte* ReplicaPeers::prepare(raft_id to, std::size_t bytes, MessageOrder order) {
  Peer& peer = peers_[to - 1];
  while (order == MessageOrder::answer && bytes <= kResponse && !peer.asks.empty()) {
    const RpcHandle ask = peer.asks.front();
    peer.asks.pop_front();
    if (MessageBuffer* const response = thread_.response(ask, static_cast<std::uint32_t>(bytes))) {
      prepared_answer_ = ask;
      return response->data;
    }
  }
  if (!peer.session || peer.calls.size() >= kMostCalls) return nullptr;
  if (order == MessageOrder::in_order && peer.sends_parts) return nullptr;
  const bool cut = bytes > kPart;
  Call& call = new_call();
  call.to = to;
  call.message = ++messages_;
  prepared_ = &call;
  if (cut) {
    call.whole.resize(bytes);
    return call.whole.data();
  }
  call.request = thread_.allocate(static_cast<std::uint32_t>(bytes));
  call.request.bytes = static_cast<std::uint32_t>(bytes);
  return call.request.data;
}

void ReplicaPeers::send(std::uint64_t tag) {
  if (prepared_answer_) {
    thread_.respond(*std::exchange(prepared_answer_, std::nullopt));
    answered_.push_back(tag);
    return;
  }
  Call& call = *std::exchange(prepared_, nullptr);
  call.tag = tag;
  peers_[call.to - 1].sends_parts |= !call.whole.empty();
  post(call, 0);
}

// Sends the part at `offset`, or a message that is not cut.
void ReplicaPeers::post(Call& call, std::size_t offset) {
  if (!call.whole.empty()) {
    const std::size_t bytes = std::min(call.whole.size() - offset, kPart - sizeof(Part));
    const Part part{.message = call.message, .offset = offset, .total = call.whole.size(), .sender = own_};
    if (offset == 0) call.request = thread_.allocate(kPart);
    std::memcpy(call.request.data, &part, sizeof part);
    std::memcpy(call.request.data + sizeof part, call.whole.data() + offset, bytes);
    call.request.bytes = static_cast<std::uint32_t>(sizeof part + bytes);
    call.next = offset + bytes;
  }
  Peer& peer = peers_[call.to - 1];
  call.sent = thread_.now();
  call.delivered = false;
  peer.calls.push_back(&call);
  thread_.call(*peer.session, {type_, &call.request, &call.response, &done, &call});
}

void ReplicaPeers::done(void* context, std::uint64_t, RpcStatus status) {
  Call& call = *static_cast<Call*>(context);
  call.delivered = status == RpcStatus::answered;
  std::erase(call.peers->peers_[call.to - 1].calls, &call);
  call.peers->finish(call);
}

void ReplicaPeers::finish(Call& call) {
  Peer& peer = peers_[call.to - 1];
  if (call.delivered && call.next < call.whole.size()) {
    if (peer.session) return post(call, call.next);
    call.delivered = false;
  }
  if (call.delivered && call.response.bytes > kEmpty) {
    io_->receive({call.response.data, call.response.bytes}, thread_.now(), call.sent);
  }
  io_->sent(call.tag, call.delivered);
  thread_.free(call.request);
  if (!call.whole.empty()) peer.sends_parts = false;
  call.whole.clear();
  call.next = 0;
  free_.push_back(&call);
}

void ReplicaPeers::take(const RpcRequest& request) {
  const std::span<const std::byte> data(request.data, request.bytes);
  Part part;
  const bool cut = data.size() >= sizeof part && data.front() == std::byte{kPartMark};
  if (cut) std::memcpy(&part, data.data(), sizeof part);
  const raft_id sender = cut ? part.sender : sender_of(data);
  if (sender == 0 || sender > peers_.size() || sender == own_) {
    if (MessageBuffer* const response = thread_.response(request.handle, kEmpty)) {
      std::memset(response->data, 0, kEmpty);
      thread_.respond(request.handle);
    }
    return;
  }
  Peer& peer = peers_[sender - 1];
  peer.asks.push_back(request.handle);
  if (!cut) {
    io_->receive(data, thread_.now(), Picos(0));
    return io_->write();
  }
  if (part.offset == 0) {
    peer.arriving = part.message;
    peer.parts.clear();
  }
  if (part.message != peer.arriving || part.offset != peer.parts.size()) return;
  peer.parts.insert(peer.parts.end(), data.begin() + sizeof part, data.end());
  if (peer.parts.size() < part.total) return;
  io_->receive(std::exchange(peer.parts, {}), thread_.now(), Picos(0));
  io_->write();
}

void ReplicaPeers::poll() {
  for (const std::uint64_t tag : std::exchange(answered_, {})) io_->sent(tag, true);
  const Picos now = thread_.now();
  for (Peer& peer : peers_) {
    if (&peer - peers_.data() + 1 == static_cast<std::ptrdiff_t>(own_)) continue;
    if (!peer.session) {
      if (now >= peer.open_at) peer.session = thread_.open(peer.address);
    } else if (thread_.state(*peer.session) == SessionState::failed ||
               (!peer.calls.empty() && now - peer.calls.front()->sent > patience_)) {
      close(peer);
    }
  }
}

// Its calls end in later passes.
void ReplicaPeers::close(Peer& peer) {
  thread_.disconnect(*std::exchange(peer.session, std::nullopt));
  peer.open_at = thread_.now() + patience_ / 4;
}

void ReplicaPeers::answer_rest() {
  if (io_->appending()) return;
  for (Peer& peer : peers_) {
    for (const RpcHandle& ask : std::exchange(peer.asks, {})) {
      MessageBuffer* const response = thread_.response(ask, kEmpty);
      if (response == nullptr) continue;
      std::memset(response->data, 0, kEmpty);
      thread_.respond(ask);
    }
  }
}

}  // namespace verbscope
