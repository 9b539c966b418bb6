#include "verbs/resources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "common/error.hpp"
#include "common/text.hpp"
#include "verbs/endpoint.hpp"

namespace verbscope {

struct Device::Spec {
  std::string name;
  std::uint8_t port = 1;
};

namespace {

// Parses the port of "mlx5_0:2". `text`: the part after the colon.
std::uint8_t parse_port(const std::string& spec, std::string_view text) {
  const std::optional<int> port = number_from<int>(text);
  if (!port || *port < 1 || *port > 255) {
    fail("device \"{}\": the port after ':' must be a number from 1 to 255", spec);
  }
  return static_cast<std::uint8_t>(*port);
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

// The errors of libibverbs and drivers for missing verbs.
bool is_unsupported(int error) {
  return error == EOPNOTSUPP || error == ENOSYS;
}

ibv_comp_channel* create_comp_channel(const Device& device) {
  ibv_comp_channel* channel = device.provider().create_comp_channel(device.get());
  if (channel == nullptr) {
    const int error = errno;
    if (is_unsupported(error)) fail_unsupported(device.name(), "completion events");
    fail("create a completion channel on {}: {}", device.name(), errno_text(error));
  }
  return channel;
}

ibv_srq* create_srq(const Pd& pd, int depth, int sge) {
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = static_cast<std::uint32_t>(depth);
  attr.attr.max_sge = static_cast<std::uint32_t>(sge);
  ibv_srq* srq = pd.provider().create_srq(pd.get(), &attr);
  if (srq != nullptr) return srq;
  const int error = errno;
  const std::string name = device_name(*pd->context);
  if (is_unsupported(error)) fail_unsupported(name, "shared receive queues");
  const std::string what = fmt::format("create a shared receive queue of depth {} with {} SGEs", depth, sge);
  ibv_device_attr device{};
  if (pd.provider().query_device(pd.get()->context, &device) == 0) {
    if (device.max_srq == 0) fail_unsupported(name, "shared receive queues");
    if (depth > device.max_srq_wr || sge > device.max_srq_sge) {
      fail("{}: {} supports up to depth {} and {} SGEs", what, name, device.max_srq_wr, device.max_srq_sge);
    }
  }
  fail("{} on {}: {}", what, name, errno_text(error));
}

ibv_cq* create_cq(const Device& device, int entries, ibv_comp_channel* channel) {
  ibv_cq* cq = device.provider().create_cq(device.get(), entries, channel, 0);
  if (cq == nullptr) {
    const int error = errno;
    const int limit = device.attributes().max_cqe;
    if (entries > limit) {
      fail("create a completion queue of {} entries: {} supports up to {}", entries, device.name(), limit);
    }
    fail("create a completion queue of {} entries on {}: {}", entries, device.name(), errno_text(error));
  }
  return cq;
}

ibv_ah* create_ah(const Pd& pd, const PathAddress& path) {
  ibv_ah_attr attr = ah_attributes(path);
  return check_pointer("create an address handle for " + describe_path(path), pd.provider().create_ah(pd.get(), &attr));
}

ibv_td* alloc_td(const Device& device) {
  ibv_td* const td = device.provider().alloc_td(device.get());
  if (td == nullptr && is_unsupported(errno)) fail_unsupported(device.name(), "one doorbell register per thread");
  return check_pointer("allocate a thread domain on " + device.name(), td);
}

// The largest inline receive that the device accepts, below `too_many`.
std::uint32_t max_inline_recv(const Device& device, Transport transport, Verb verb, std::uint32_t too_many) {
  std::uint32_t accepted = 0;
  while (accepted + 1 < too_many) {
    const std::uint32_t middle = accepted + (too_many - accepted) / 2;
    (device.provider().set_inline_recv(device.get(), transport, verb, middle) == 0 ? accepted : too_many) = middle;
  }
  return accepted;
}

}  // namespace

std::string device_name(const ibv_context& context) {
  return context.device == nullptr ? "the device" : context.device->name;
}

void fail_unsupported(const std::string& device, const std::string& feature) {
  fail("not supported by {}: {}", device, feature);
}

Context::Context(Provider& provider, const std::string& name)
    : Owned(provider, check_pointer("open RDMA device " + name, provider.open(name))) {
  notify_created();
}

Device::Device(Provider& provider, const std::string& spec)
    : Device(provider, [&] {
        const auto colon = spec.find(':');
        Spec parsed{spec.substr(0, colon)};
        if (colon != std::string::npos) parsed.port = parse_port(spec, std::string_view(spec).substr(colon + 1));
        const std::vector<std::string> found = provider.device_names();
        if (found.empty()) fail("no RDMA device found{}", spec.empty() ? "" : "; requested \"" + spec + '"');
        if (parsed.name.empty()) parsed.name = found.front();
        if (std::ranges::find(found, parsed.name) == found.end()) {
          fail("no RDMA device \"{}\": found {}", parsed.name, fmt::join(found, ", "));
        }
        return parsed;
      }()) {}

Device::Device(Provider& provider, const Spec& spec)
    : Context(provider, spec.name), name_(spec.name), port_(spec.port) {
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

ThreadDomain::ThreadDomain(const Device& device) : Owned(device.provider(), alloc_td(device)) {}

Pd::Pd(const Device& device, const Pd& pd, const ThreadDomain& domain)
    : Owned(device.provider(), check_pointer("allocate a parent domain on " + device.name(),
                                             device.provider().alloc_parent_domain(pd.get(), domain.get()))) {}

void set_doorbell_registers(Provider& provider, const std::string& name, std::uint32_t total) {
  const int error = provider.set_doorbell_registers(name, total);
  if (error == 0) {
    if (provider.observer() != nullptr) provider.observer()->set_doorbell_registers(total);
    return;
  }
  if (is_unsupported(error)) fail_unsupported(name, fmt::format("a choice of {} doorbell registers", total));
  fail("{} doorbell registers on {}: {}", total, name, errno_text(error));
}

Mr::Mr(const Pd& pd, void* address, std::size_t length, int access)
    : Owned(pd.provider(), register_memory(pd, address, length, access)) {
  notify_created(*pd.get()->context, address, length);
}

CompChannel::CompChannel(const Device& device) : Owned(device.provider(), create_comp_channel(device)) {}

Cq::Cq(const Device& device, int entries, ibv_comp_channel* channel)
    : Owned(device.provider(), create_cq(device, entries, channel)) {
  notify_created();
}

Srq::Srq(const Pd& pd, int depth, int sge) : Owned(pd.provider(), create_srq(pd, depth, sge)) {
  notify_created(static_cast<std::uint32_t>(sge));
}

void set_inline_recv(const Device& device, Transport transport, Verb verb, std::uint32_t bytes) {
  const int error = device.provider().set_inline_recv(device.get(), transport, verb, bytes);
  if (error == 0) return;
  if (is_unsupported(error)) {
    fail_unsupported(device.name(), fmt::format("inline receive of {} {}", to_string(transport), to_string(verb)));
  }
  if (error == EINVAL) {
    fail_unsupported(device.name(), fmt::format("inline receive of {} bytes (up to {} bytes are supported)", bytes,
                                                max_inline_recv(device, transport, verb, bytes)));
  }
  fail("inline receive of {} bytes on {}: {}", bytes, device.name(), errno_text(error));
}

Ah::Ah(const Pd& pd, const PathAddress& path) : Owned(pd.provider(), create_ah(pd, path)) {
  notify_created(*pd.get()->context);
}

}  // namespace verbscope
