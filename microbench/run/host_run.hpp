// The driver for this machine: one process plays one role on a libibverbs device, or the measured role alone on the
// null device. Threads are pinned; the exchange goes over TCP; the calling thread is the conductor.
//
//   server                                   client i
//      | <------------ endpoints -------------- |
//      | ------------- endpoints -------------> |   both connect
//      | <-------------- ready ---------------- |
//      | --------------- go ------------------> |   both start their threads
//      | --------- phase {measure} -----------> |
//      | <----- progress {opened, closed} ----- |   only when the clients' windows make the rate: when all threads
//      |                                        |   have begun to measure, with --iters each second until they end
//      | ---------- phase {stop} -------------> |   who sends drains; said each second until then
//      | <-- sent {messages} -- and -- sent --> |   who receives waits for so many
//      | <------------- result ---------------- |
//      | --------------- bye -----------------> |
#pragma once

#include "exchange/message.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/outcome.hpp"

namespace verbscope {

// Runs one point on the verbs device, as server or client, or on the null device. Throws Error.
Outcome run_on_host(const Benchmark& benchmark, const Options& options, const OptionTable& table);

// What both sides must agree on: every option but those that are a side's own affair (device, cores, ...).
Hello make_hello(const Benchmark& benchmark, const Options& options, const OptionTable& table);

// The same on a device of `provider`. The server prints "listening on port N" on standard output before it waits for
// its clients; on the null fabric it has none. A client connects to options.host.
Outcome run_server(const Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider);
Outcome run_client(const Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider);

}  // namespace verbscope
