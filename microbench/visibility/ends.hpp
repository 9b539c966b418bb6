// The two sides of write_visibility as workloads, and their results.
#pragma once

#include <memory>
#include <string>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// Bytes of the region of either side for WRITEs of `payload` bytes.
std::uint64_t visibility_region_bytes(std::uint32_t payload);

std::unique_ptr<Workload> make_visibility_writer(const ThreadSetup& setup);
std::unique_ptr<Workload> make_visibility_reader(const ThreadSetup& setup);

// The results of a node's thread: latencies of the writer, or order and visibility of the reader.
Json visibility_results(const Workload& thread);
// Lines for the console, from the server's result with the client's merged into it.
std::string visibility_text(const Json& result);

}  // namespace verbscope
