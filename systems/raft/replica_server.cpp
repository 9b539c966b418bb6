#include "systems/raft/replica_server.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {

namespace {

struct CountKey {
  const char* name;
  std::uint64_t ReplicaCounts::*count;
};
constexpr std::array<CountKey, 11> kCounts = {{{"puts", &ReplicaCounts::puts},
                                               {"gets", &ReplicaCounts::gets},
                                               {"elections", &ReplicaCounts::elections},
                                               {"terms", &ReplicaCounts::terms},
                                               {"leaderships", &ReplicaCounts::leaderships},
                                               {"probes", &ReplicaCounts::probes},
                                               {"snapshots", &ReplicaCounts::snapshots},
                                               {"no_space", &ReplicaCounts::no_space},
                                               {"lag_samples", &ReplicaCounts::lag_samples},
                                               {"lag_sum", &ReplicaCounts::lag_sum},
                                               {"lag_max", &ReplicaCounts::lag_max}}};

}  // namespace

Json ReplicaReport::to_json() const {
  Json json{{"leads", leads}, {"full", full}, {"term", term}, {"busy", busy}, {"commits", commits.pack()}};
  for (const CountKey& key : kCounts) json[key.name] = counts.*key.count;
  return json;
}

ReplicaReport ReplicaReport::from_json(const std::string& text) {
  const std::string where = "report of a replica";
  const Json json = parse_json_text(text, where);
  JsonFields fields(json, where);
  ReplicaReport report;
  report.leads = fields.require<bool>("leads");
  report.full = fields.require<bool>("full");
  report.term = fields.require<std::uint64_t>("term");
  report.busy = fields.require<double>("busy");
  report.commits = Histogram::unpack(fields.at("commits"), where);
  for (const CountKey& key : kCounts) report.counts.*key.count = fields.require<std::uint64_t>(key.name);
  fields.reject_unknown();
  return report;
}

ReplicaServer::ReplicaServer(ServiceThread& thread, const ReplicaOptions& options, RaftLog& log)
    : thread_(thread),
      log_name_(log.storage().name()),
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
  ReplicaReport report{.leads = replica_.leads(),
                       .full = replica_.full(),
                       .term = replica_.c_raft().current_term,
                       .counts = replica_.counts(),
                       .commits = replica_.commits()};
  const Picos now = thread_.now();
  if (now > since_) report.busy = to_seconds(thread_.busy() - busy_) / to_seconds(now - since_);
  const std::string text = report.to_json().dump();
  const std::string_view asked(reinterpret_cast<const char*>(request.data), request.bytes);
  if (asked == "clear") {
    replica_.clear_counts();
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
               id_, log_name_.c_str());
}

// For those who watch the process. A simulated replica has no output of its own.
void ReplicaServer::say_if_leader() {
  const std::uint64_t term = replica_.c_raft().current_term;
  if (!replica_.leads() || term == said_leader_ || !thread_.servers().empty()) return;
  said_leader_ = term;
  print_text(stdout, fmt::format("replica {} leads in term {}\n", id_, term));
}

}  // namespace verbscope
