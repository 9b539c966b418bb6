#include "systems/rpc_rate/echo_benchmark.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "microbench/bench/options.hpp"

namespace verbscope {

EchoBenchmark::EchoBenchmark(const RpcDefaults& defaults)
    : RpcBenchmark(defaults.load, defaults.machines),
      defaults_(defaults),
      serving_(defaults.load.all_serve ? RpcServing::all : RpcServing::server) {}

void EchoBenchmark::options(OptionTable& table) {
  begin_options(table, defaults_.request_bytes);
  table.restate("--threads", 1, "threads of each machine, each pinned to a core");
  add_load_options(table);
  add_handler_options(table);
  add_protocol_options(table);
}

void EchoBenchmark::add_load_options(OptionTable& table) {
  table.integer("--machines", machines_, 2u, 1u << 10, "number of machines: one server, the others clients");
  if (defaults_.incast) {
    table.bytes("--background", background_bytes_, kLeastMessage, kMaxMessageBytes,
                "the last thread of each client calls those of random other clients, one request at a time, with "
                "requests and responses of this size; --threads is then 2 by default");
  } else {
    table.choice<RpcServing>(
        "--serve", serving_, {{"all", RpcServing::all}, {"server", RpcServing::server}, {"peers", RpcServing::peers}},
        "machines that serve: all, which also call each other; only the server, which then calls none; or, on the null "
        "device, only the peers");
  }
  const std::string response =
      defaults_.response_bytes ? fmt::format("default {}", *defaults_.response_bytes) : "default: --size";
  table.integer("--response_size", response_bytes_, kLeastMessage, kMaxMessageBytes,
                fmt::format("bytes of a response ({})", response));
  add_batch_options(table);
}

void EchoBenchmark::add_handler_options(OptionTable& table) {
  table.integer("--handler_ns", handler_ns_, 0u, 1'000'000'000u, "time that the handler of a slow request takes");
  table.integer("--slow_percent", slow_percent_, 1u, 100u,
                "share of slow requests (default 100 with --handler_ns or --handler worker, else none)");
  table.choice<bool>("--handler", by_workers_, {{"dispatch", false}, {"worker", true}},
                     "threads that handle slow requests: the one that received it, or worker threads");
  table.integer("--workers", workers_, 1u, 1u << 10,
                "worker threads of each machine, besides --threads (default 1 with --handler worker)");
}

void EchoBenchmark::adjust(Options& o) {
  begin_adjust(o);
  if (!defaults_.incast) load_.all_serve = serving_ != RpcServing::server;
  settle_messages(o);
  settle_machines(o);
  settle_recvs(o);
  settle_played(o);
  settle_handlers(o);
  settle_network(o);
}

void EchoBenchmark::settle_messages(Options& o) {
  o.size = o.size.value_or(defaults_.request_bytes);
  load_.response_bytes = response_bytes_.value_or(defaults_.response_bytes.value_or(*o.size));
  load_.background_bytes = background_bytes_.value_or(0);
  check_message("--size", *o.size);
  check_message("--response_size", load_.response_bytes);
  if (!background_bytes_) return;
  if (fasst_) fail_usage("--background {}: only with --rpc erpc", load_.background_bytes);
  check_message("--background", load_.background_bytes);
}

void EchoBenchmark::settle_machines(Options& o) {
  const std::uint32_t clients = machines_ - 1;
  if (load_.background_bytes > 0) {
    if (!table_->given("--threads")) o.threads = 2;
    if (o.threads < 2) fail_usage("--background {}: needs --threads 2 or more", load_.background_bytes);
    if (clients < 2) fail_usage("--background {}: needs --machines 3 or more", load_.background_bytes);
  }
  if (o.clients && *o.clients != clients) {
    fail_usage("--clients {}: leave it out, --machines {} sets it to {}", *o.clients, machines_, clients);
  }
  if (o.client_threads && *o.client_threads != o.threads) {
    fail_usage("--client_threads {}: every machine has --threads {}; leave out --client_threads", *o.client_threads,
               o.threads);
  }
  o.clients = clients;
  o.client_threads = endpoints_ = client_endpoints_ = o.threads;
}

void EchoBenchmark::settle_handlers(Options& o) {
  if (workers_ && !by_workers_) fail_usage("--workers {}: only with --handler worker", *workers_);
  if (slow_percent_ && handler_ns_ == 0 && !by_workers_) {
    fail_usage("--slow_percent {}: give --handler_ns or --handler worker", *slow_percent_);
  }
  if (by_workers_ && fasst_) {
    fail_usage("--handler worker: with --rpc fasst the threads that receive requests handle them");
  }
  work_ = {.slow_percent = slow_percent_.value_or(handler_ns_ > 0 || by_workers_ ? 100 : 0),
           .handler_time = Nanos(handler_ns_)};
  load_.worker_queues = {};
  if (!by_workers_) return;
  load_.worker_queues = {
      .endpoints = o.threads, .workers = workers_.value_or(1), .requests = sessions() * kSessionSlots};
  o.threads += load_.worker_queues.workers;
  o.client_threads = o.threads;
}

// On the null device, which has no network, each thread plays its peers.
void EchoBenchmark::settle_played(const Options& o) {
  const bool null = o.fabric == "null";
  load_.serves = serving_ != RpcServing::peers;
  load_.played = null ? *o.clients * o.threads : 0;
  if (!load_.serves && !null) {
    fail_usage("--serve peers: only with --fabric null, where a thread plays its peers");
  }
  if (null && load_.background_bytes > 0) {
    fail_usage("--background {}: not with --fabric null, which has no clients", load_.background_bytes);
  }
  if (null && by_workers_) fail_usage("--handler worker: not with --fabric null");
  const std::uint32_t most = load_.packet_bytes - kPacketHeaderBytes;
  if (null && std::max(*o.size, load_.response_bytes) > most) {
    fail_usage("--fabric null: messages have one packet, at most {} bytes with --packet_size {}", most,
               load_.packet_bytes);
  }
}

std::vector<RpcBenchmark::LatencyKinds> EchoBenchmark::latency_kinds() const {
  std::vector<LatencyKinds> kinds{{"lat", {kUsualRequest, kSlowRequest}}};
  if (work_.has_quick()) kinds.push_back({"quick", {kUsualRequest}});
  return kinds;
}

}  // namespace verbscope
