// The two ends of an echo as workloads.
#pragma once

#include <memory>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// The verbs of request and response, WRITE or SEND. write_send answers on a UD QP of its own.
enum class EchoMode : std::uint8_t { write_write, write_send, send_send };

struct EchoOptions {
  EchoMode mode = EchoMode::write_write;
  std::uint32_t outstanding = 16;  // requests on a QP
  Picos give_up{0};                // a request that can be lost is given up after so long without a response on its QP

  bool requests_written() const { return mode != EchoMode::send_send; }
  bool responses_written() const { return mode == EchoMode::write_write; }
};

// Bytes that a QP of a node needs for what peers write there; 0: they write nothing.
std::uint64_t echo_slice_bytes(const EchoOptions& options, std::uint32_t payload, Side side);

// The two workloads. Throws Error when the receive queue is too short for what all peers may have outstanding.
std::unique_ptr<Workload> make_echo_client(const ThreadSetup& setup, const EchoOptions& options);
std::unique_ptr<Workload> make_echo_server(const ThreadSetup& setup, const EchoOptions& options);

}  // namespace verbscope
