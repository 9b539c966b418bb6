// The driver for this machine: one process runs one node on a libibverbs device, or the server alone on the null
// device. Threads are pinned; the exchange goes over TCP (tcp_link.hpp); the calling thread is the controller.
#pragma once

#include "exchange/message.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/outcome.hpp"

namespace verbscope {

// Runs one point on the verbs device, as server or client, or on the null device. Throws Error.
Outcome run_on_host(const Benchmark& benchmark, const Options& options, const OptionTable& table);

// What either side tells of itself, with what both must agree on: every option but those that are a side's own affair
// (device, cores, ...).
Terms make_terms(const Benchmark& benchmark, const Options& options, const OptionTable& table);

// Runs one point, as server or as client, on a device of `provider`, which is looked at before the other side is. The
// server prints "listening on port N" on standard output before it waits for its clients; on the null fabric it has
// none. A client connects to options.host.
Outcome run_server(const Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider);
Outcome run_client(const Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider);

}  // namespace verbscope
