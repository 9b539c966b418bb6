#include "microbench/run/ports.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/error.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

namespace {

// A context for asking questions, without choosing a port.
class Context : public Owned<ibv_context, &Provider::close> {
 public:
  Context(Provider& provider, const std::string& name)
      : Owned(provider, check_pointer("open RDMA device " + name, provider.open(name))) {}
};

std::vector<int> active_ports(Provider& provider, const std::string& name) {
  const Context context(provider, name);
  ibv_device_attr attributes{};
  check_errno("query RDMA device " + name, provider.query_device(context.get(), &attributes));
  std::vector<int> ports;
  for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
    ibv_port_attr state{};
    check_errno(fmt::format("query port {}:{}", name, port),
                provider.query_port(context.get(), static_cast<std::uint8_t>(port), &state));
    if (state.state == IBV_PORT_ACTIVE) ports.push_back(port);
  }
  if (ports.empty()) fail("none of the {} ports of {} is active", attributes.phys_port_cnt, name);
  return ports;
}

}  // namespace

DevicePorts choose_ports(Provider& provider, const std::string& device, int port) {
  const std::vector<std::string> found = provider.device_names();
  if (found.empty()) {
    fail("no RDMA device found; --fabric sim:cib runs on a simulated cluster, --fabric null without any device");
  }
  const std::size_t colon = device.find(':');
  const std::string name = device.empty() ? found.front() : device.substr(0, colon);
  if (std::ranges::find(found, name) == found.end()) {
    fail("no RDMA device \"{}\": found {}", name, fmt::join(found, ", "));
  }
  if (colon == std::string::npos && port == 0) return {name, active_ports(provider, name)};
  const Device chosen(provider, colon == std::string::npos ? fmt::format("{}:{}", name, port) : device);
  return {name, {chosen.port()}};
}

}  // namespace verbscope
