#include "microbench/run/node_device.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

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
  if (ports.empty()) fail("no port of {} is active (of {})", name, attributes.phys_port_cnt);
  return ports;
}

}  // namespace

DevicePorts choose_ports(Provider& provider, const Options& options) {
  const std::vector<std::string> found = provider.device_names();
  if (found.empty()) {
    fail("no RDMA device found; --fabric sim:cib runs on a simulated cluster, --fabric null without any device");
  }
  const std::string name = options.ib_dev.empty() ? found.front() : options.ib_dev.substr(0, options.ib_dev.find(':'));
  if (std::ranges::find(found, name) == found.end()) {
    fail("no RDMA device \"{}\": found {}", name, fmt::join(found, ", "));
  }
  const int port = selected_port(options);
  if (port == 0) return {name, active_ports(provider, name)};
  const Device chosen(provider, fmt::format("{}:{}", name, port));
  return {name, {chosen.port()}};
}

NodePart::NodePart(const Benchmark& its_benchmark, const Plan& its_plan, Side its_side, std::uint32_t its_client,
                   const NodePlace& place)
    : benchmark(its_benchmark),
      plan(its_plan),
      side(its_side),
      client(its_client),
      alone(place.alone),
      huge_pages(place.huge_pages),
      domains(place.uars.exclusive),
      settings(place.qps),
      qps(plan_qps(its_plan.topology, its_side, its_client)) {}

std::uint32_t NodePart::threads() const {
  return plan.topology.local || threads_per_qp() > 1 ? plan.topology.threads : used_threads(qps);
}

std::string NodePart::name_of(std::uint32_t machine) {
  return machine == 0 ? "server" : fmt::format("client{}", machine - 1);
}

NodePorts::NodePorts(const NodePart& part, const NodePlace& place) : part_(part) {
  if (place.uars.shared > 0) set_doorbell_registers(*place.provider, place.device, place.uars.shared);
  for (const int port : place.ports) {
    const Device& device = ports_.emplace_back(*place.provider, fmt::format("{}:{}", place.device, port));
    gids_.push_back(choose_gid(device, place.gid_index));
    check_settings(device, gids_.back());
    const auto active = static_cast<std::uint32_t>(mtu_bytes(device.port_attributes().active_mtu));
    if (place.mtu && *place.mtu > active) {
      fail_usage("--mtu {} is over the active MTU of {}:{}, which is {}", *place.mtu, device.name(), port, active);
    }
    mtu_ = mtu_ == 0 ? place.mtu.value_or(active) : std::min(mtu_, place.mtu.value_or(active));
  }
  check_datagram_size();
}

// Refuses settings that the port or its packets do not support.
void NodePorts::check_settings(const Device& device, const GidChoice& gid) const {
  const QpSettings& settings = part_.settings;
  const std::uint32_t entries = device.port_attributes().pkey_tbl_len;
  if (settings.pkey_index >= std::max(entries, 1u)) {
    fail_usage("--pkey_index {}: the size of the table of {}:{} is {}", settings.pkey_index, device.name(),
               device.port(), entries);
  }
  const int depth = std::clamp(device.attributes().max_qp_init_rd_atom, 1, 255);
  if (std::cmp_greater(settings.outstanding.value_or(1), depth)) {
    fail_usage("--outs {}: {} allows at most {}", *settings.outstanding, device.name(), depth);
  }
  if (settings.rdma_cm && device.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) {
    fail_usage("--rdma_cm: {}:{} is an InfiniBand port; only Ethernet ports are supported", device.name(),
               device.port());
  }
  if (settings.rdma_cm && is_link_local(gid.gid)) {
    fail_usage("--rdma_cm: GID {} of {}:{} is a link-local address; select another with --gid_index", gid_text(gid.gid),
               device.name(), device.port());
  }
  if (gid.global) return;
  const auto refuse = [&](const char* option, std::uint32_t value) {
    if (value == 0) return;
    fail_usage("{} {}: packets of {}:{} have no GRH; give --gid_index", option, value, device.name(), device.port());
  };
  refuse("--tclass", settings.traffic_class);
  refuse("--flow_label", settings.flow_label);
}

void NodePorts::limit_mtu(std::uint32_t mtu) {
  mtu_ = std::min(mtu_, mtu);
  check_datagram_size();
}

void NodePorts::check_datagram_size() const {
  const Operation& op = part_.plan.operation;
  const LongestDatagram longest = part_.benchmark.longest_datagram(op);
  std::vector<Transport> used;
  for (const QpPlan& plan : part_.qps) used.push_back(plan.transport);
  if (const std::optional<Transport> companion = part_.benchmark.companion(op)) used.push_back(*companion);
  for (const Transport transport : used) {
    if (!facts(transport).one_packet || longest.bytes <= mtu_) continue;
    fail_usage("{} {} is over the MTU of {} bytes, the limit of a {} message", longest.option, longest.bytes, mtu_,
               to_string(transport));
  }
}

Endpoint NodePorts::endpoint(std::uint32_t port, const Qp& qp) const {
  return make_endpoint(ports_[port], gids_[port], qp, 0, kDefaultQkey);
}

Json NodePorts::describe() const {
  Json ports = Json::array();
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    ports.push_back(Json{{"port", ports_[i].port()}, {"address", gids_[i].why}});
  }
  return Json{{"device", device().name()}, {"ports", ports}, {"path_mtu_bytes", mtu_}};
}

NodeDevice::NodeDevice(const NodePart& part, const NodePlace& place)
    : part_(part), ports_(part, place), pd_(ports_.device()) {
  create_region();
}

void NodeDevice::create_region() {
  const Operation& op = part_.plan.operation;
  const auto datagram = [](const QpPlan& plan) { return !facts(plan.transport).connected; };
  const auto extra = part_.plan.topology.client_qps ? std::ranges::count_if(part_.qps, datagram) : 0;
  const auto qps = static_cast<std::uint32_t>(part_.qps.size() - static_cast<std::size_t>(extra));
  RegionNeeds needs = part_.benchmark.region(op, part_.side, qps);
  if (part_.alone && needs.bytes == 0) needs = part_.benchmark.region(op, Side::client, qps);
  access_ = needs.bytes > 0 ? needs.access & ~int{IBV_ACCESS_RELAXED_ORDERING} : IBV_ACCESS_LOCAL_WRITE;
  region_relaxed_ = needs.bytes > 0 && needs.access != access_;
  if ((access_ & IBV_ACCESS_REMOTE_ATOMIC) != 0 && device().attributes().atomic_cap == IBV_ATOMIC_NONE) {
    fail("not supported by {}: atomics", device().name());
  }
  if (needs.bytes == 0) return;
  if (part_.huge_pages) {
    region_.emplace(Bytes(needs.bytes), needs.huge_pages ? PageSize::mb2 : PageSize::kb4);
  } else {
    region_.emplace(Bytes(needs.bytes), false);  // a simulated adapter gets the page size by the registration
  }
  part_.benchmark.fill(op, part_.side, region_->bytes());
  const int pages = needs.huge_pages ? int{IBV_ACCESS_HUGETLB} : 0;
  region_mr_.emplace(pd_, region_->data(), region_->size(), needs.access | pages);
}

LocalRegion NodeDevice::region() const {
  return region_ ? LocalRegion{region_->bytes(), region_mr_->lkey()} : LocalRegion{};
}

RemoteRegion NodeDevice::shared_region() const {
  if (!region_) return {};
  return {reinterpret_cast<std::uint64_t>(region_->data()), region_->size(), region_mr_->rkey()};
}

}  // namespace verbscope
