// The driver for this machine: one process plays one role on a libibverbs device, or the measured role alone on the
// null device. Threads are pinned; the exchange goes over TCP; the calling thread is the conductor.
//
//   server                                   client i
//      | <------------ endpoints -------------- |
//      | ------------- endpoints -------------> |   both connect
//      | <-------------- ready ---------------- |
//      | --------------- go ------------------> |   both start their threads
//      | --------- phase {measure} -----------> |
//      | ---------- phase {stop} -------------> |   who sends drains
//      | <-- sent {messages} -- and -- sent --> |   who receives waits for so many
//      | <------------- result ---------------- |
//      | --------------- bye -----------------> |
#pragma once

#include "microbench/benchmark.hpp"
#include "microbench/options.hpp"
#include "microbench/outcome.hpp"

namespace verbscope {

// Runs one point on the verbs device, as server or client, or on the null device. Prints "listening on port N" on
// standard output before it waits for clients. Throws Error.
Outcome run_on_host(const Benchmark& benchmark, const Options& options, const OptionTable& table);

}  // namespace verbscope
