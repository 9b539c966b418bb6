// The options of every service.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "systems/rpc/rpc_options.hpp"

namespace verbscope {

struct ServiceOptions {
  std::string name;  // of the service
  // Each HOST or HOST:PORT, or the name of a simulated machine. Empty: this process is a server on a device.
  std::vector<std::string> servers;
  std::string fabric = "verbs";
  std::string ib_dev;
  int gid_index = -1;
  std::uint32_t port = 18515;  // of the server, for TCP
  std::string secret;
  std::string cores;
  std::uint32_t threads = 1;     // of each process
  std::uint32_t workers = 0;     // of each server
  std::uint32_t clients = 1;     // simulated
  std::uint64_t seed = 1;        // simulated
  std::optional<double> loss{};  // simulated: share of the packets; none: the profile's
  std::string out_json_file;     // as of a benchmark
  Picos timeout = std::chrono::seconds(5);
  std::uint32_t packet_bytes = 1024;
  RpcOptions rpc{};
};

}  // namespace verbscope
