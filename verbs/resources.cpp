#include "verbs/resources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

#include "common/error.hpp"
#include "verbs/path.hpp"

namespace verbscope {

struct Device::Spec {
  std::string name;
  std::uint8_t port = 1;
};

namespace {

// The port of "mlx5_0:2"; `text` is what follows the colon.
std::uint8_t parse_port(const std::string& spec, std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 255) {
    fail("device \"{}\": the port after ':' must be a number from 1 to 255", spec);
  }
  return static_cast<std::uint8_t>(port);
}

ibv_context* open_device(Provider& provider, const std::string& name) {
  return check_pointer("open RDMA device " + name, provider.open(name));
}

std::string memlock_hint() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(" (this process may lock {} bytes: ulimit -l)", limit.rlim_cur);
}

ibv_mr* register_memory(const Pd& pd, void* address, std::size_t length, int access) {
  ibv_mr* mr = pd.provider().reg_mr(pd.get(), address, length, access);
  if (mr == nullptr) {
    const int error = errno;
    fail("register {} bytes of memory: {}{}", length, errno_text(error), error == ENOMEM ? memlock_hint() : "");
  }
  return mr;
}

ibv_cq* create_cq(const Device& device, int entries) {
  ibv_cq* cq = device.provider().create_cq(device.get(), entries);
  if (cq == nullptr) {
    const int error = errno;
    const int offered = device.attributes().max_cqe;
    if (entries > offered) {
      fail("create a completion queue of {} entries: {} offers {}", entries, device.name(), offered);
    }
    fail("create a completion queue of {} entries on {}: {}", entries, device.name(), errno_text(error));
  }
  return cq;
}

ibv_ah* create_ah(const Pd& pd, const PathAddress& path) {
  ibv_ah_attr attr = ah_attributes(path);
  return check_pointer("create an address handle for " + describe_path(path), pd.provider().create_ah(pd.get(), &attr));
}

}  // namespace

Device::Device(Provider& provider, const std::string& spec)
    : Device(provider, [&] {
        const auto colon = spec.find(':');
        Spec parsed{spec.substr(0, colon)};
        if (colon != std::string::npos) parsed.port = parse_port(spec, std::string_view(spec).substr(colon + 1));
        const std::vector<std::string> found = provider.device_names();
        if (found.empty()) fail("no RDMA device found{}", spec.empty() ? "" : ", asked for \"" + spec + '"');
        if (parsed.name.empty()) parsed.name = found.front();
        if (std::ranges::find(found, parsed.name) == found.end()) {
          fail("no RDMA device \"{}\": found {}", parsed.name, fmt::join(found, ", "));
        }
        return parsed;
      }()) {}

Device::Device(Provider& provider, const Spec& spec)
    : Owned(provider, open_device(provider, spec.name)), name_(spec.name), port_(spec.port) {
  check_errno("query RDMA device " + name_, provider.query_device(get(), &attributes_));
  if (port_ > attributes_.phys_port_cnt) {
    fail("device {} has no port {}: it has {}", name_, port_,
         attributes_.phys_port_cnt == 1 ? "port 1 only" : fmt::format("ports 1-{}", attributes_.phys_port_cnt));
  }
  check_errno(fmt::format("query port {} of RDMA device {}", port_, name_),
              provider.query_port(get(), port_, &port_attributes_));
  const ibv_port_state state = port_attributes_.state;
  if (state != IBV_PORT_ACTIVE && state != IBV_PORT_ACTIVE_DEFER) {
    fail("port {} of device {} is not active: its state is {}", port_, name_, ibv_port_state_str(state));
  }
}

Pd::Pd(const Device& device)
    : Owned(device.provider(), check_pointer("allocate a protection domain on " + device.name(),
                                             device.provider().alloc_pd(device.get()))) {}

Mr::Mr(const Pd& pd, void* address, std::size_t length, int access)
    : Owned(pd.provider(), register_memory(pd, address, length, access)) {}

Cq::Cq(const Device& device, int entries) : Owned(device.provider(), create_cq(device, entries)) {}

Ah::Ah(const Pd& pd, const PathAddress& path) : Owned(pd.provider(), create_ah(pd, path)) {}

}  // namespace verbscope
