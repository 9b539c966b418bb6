// The two ends of an echo as workloads.
#pragma once

#include <memory>
#include <vector>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// The verbs of request and response, WRITE or SEND. write_send answers on a UD QP of its own.
enum class EchoMode : std::uint8_t { write_write, write_send, send_send };

struct EchoOptions {
  EchoMode mode = EchoMode::write_write;
  std::uint32_t outstanding = 16;  // requests on a QP
  std::uint32_t answer_qps = 1;    // UD QPs of a thread that answers go out on
  Nanos work{0};                   // what the server computes for each request
  Picos give_up{0};                // a request that can be lost is given up after so long without a response on its QP

  bool requests_written() const { return mode != EchoMode::send_send; }
  bool responses_written() const { return mode == EchoMode::write_write; }
  bool answers_by_datagram(const Operation& op) const {
    return mode == EchoMode::write_send || !facts(op.transport).connected;
  }
};

// Bytes that a QP of a node needs for what peers write there; 0: they write nothing.
std::uint64_t echo_slice_bytes(const EchoOptions& options, std::uint32_t payload, Side side);

// The two workloads. Throws Error when the receive queue is too short for what all peers may have outstanding.
std::unique_ptr<Workload> make_echo_client(const ThreadSetup& setup, const EchoOptions& options);
std::unique_ptr<Workload> make_echo_server(const ThreadSetup& setup, const EchoOptions& options);

// The key of a client's latencies, packed for the server, in its results.
inline constexpr const char* kPackedLatency = "lat_packed";

// What the threads of a node found beside their rate: the clients' latencies, the server's lists of answers.
Json echo_results(const std::vector<const Workload*>& threads);

}  // namespace verbscope
