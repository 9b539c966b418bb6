#include "systems/raft/replica_server.hpp"

#include <cstdio>
#include <cstring>
#include <string_view>

#include "common/terminal.hpp"
#include "systems/raft/replica_report.hpp"

namespace verbscope {

ReplicaServer::ReplicaServer(ServiceThread& thread, const ReplicaOptions& options, RaftLog& log)
    : thread_(thread),
      log_(log),
      id_(options.id),
      peers_(thread, kReplicaMessage, options.id, options.io.addresses, 2 * options.io.election),
      replica_(options, log, peers_, &answer, this) {
  peers_.serve(replica_.io());
  thread_.serve(
      kStoreRequest,
      [](void* server, const RpcRequest& request) {
        auto& self = *static_cast<ReplicaServer*>(server);
        self.replica_.request(request.handle, {request.data, request.bytes}, self.thread_.now());
      },
      this);
  thread_.serve(
      kReplicaReport,
      [](void* server, const RpcRequest& request) { static_cast<ReplicaServer*>(server)->report(request); }, this);
}

void ReplicaServer::poll() {
  peers_.poll();
  replica_.poll(thread_.now());
  peers_.answer_rest();
  thread_.wake_by(replica_.wake_at());
  say_if_full();
  say_if_leader();
}

void ReplicaServer::answer(void* server, const RpcHandle& handle, const StoreAnswer& content) {
  ServiceThread& thread = static_cast<ReplicaServer*>(server)->thread_;
  const auto bytes = static_cast<std::uint32_t>(content.bytes());
  MessageBuffer* const response = thread.response(handle, bytes);
  if (response == nullptr) return;  // the client has gone
  std::memcpy(response->data, &content, bytes);
  thread.respond(handle);
}

void ReplicaServer::report(const RpcRequest& request) {
  const Picos now = thread_.now();
  const ReplicaReport report{.leads = replica_.leads(),
                             .full = replica_.full(),
                             .term = replica_.c_raft().current_term,
                             .counts = replica_.counts(),
                             .seconds = to_seconds(now - since_),
                             .busy_s = to_seconds(thread_.busy() - busy_),
                             .commits = replica_.commits(),
                             .syncs = log_.syncs(),
                             .append_waits = replica_.append_waits()};
  const std::string text = report.to_json().dump();
  const std::string_view asked(reinterpret_cast<const char*>(request.data), request.bytes);
  if (asked == "clear") {
    replica_.clear_counts();
    log_.clear_syncs();
    since_ = now;
    busy_ = thread_.busy();
  }
  MessageBuffer* const response = thread_.response(request.handle, static_cast<std::uint32_t>(text.size()));
  if (response == nullptr) return;
  std::memcpy(response->data, text.data(), text.size());
  thread_.respond(request.handle);
}

void ReplicaServer::say_if_full() {
  if (replica_.full() == said_full_) return;
  said_full_ = replica_.full();
  std::fprintf(stderr,
               said_full_ ? "replica %llu: no space left for the log %s: it takes no PUTs\n"
                          : "replica %llu: the log %s has space again\n",
               id_, log_.storage().name().c_str());
}

// For those who watch the process. A simulated replica has no output of its own.
void ReplicaServer::say_if_leader() {
  const std::uint64_t term = replica_.c_raft().current_term;
  if (!replica_.leads() || term == said_leader_ || !thread_.servers().empty()) return;
  said_leader_ = term;
  print_text(stdout, fmt::format("replica {} leads in term {}\n", id_, term));
}

}  // namespace verbscope
