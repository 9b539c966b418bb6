#include "counters/kernel_sources.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "common/error.hpp"
#include "common/fd.hpp"
#include "common/text.hpp"
#include "counters/tool_process.hpp"

namespace verbscope {

namespace {

namespace fs = std::filesystem;

// mlx5: percentage of the last second in which the NIC waited for PCIe; not a count.
constexpr std::array<const char*, 2> kGauges = {"outbound_pci_stalled_rd", "outbound_pci_stalled_wr"};
constexpr std::string_view kPciePrefix = "outbound_pci_";
// Not a count: the time for which the kernel caches values before it asks the NIC again.
constexpr const char* kLifespan = "lifespan";

// Nothing if the file cannot be read or contains no number: some counters contain "N/A (no PMA)".
std::optional<std::uint64_t> read_number(const fs::path& file) {
  std::ifstream stream(file);
  std::string text;
  return std::getline(stream, text) ? number_from<std::uint64_t>(text) : std::nullopt;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

}  // namespace

NicSource::NicSource(NicPlace place, Ethtool ethtool) : place_(std::move(place)), ethtool_(std::move(ethtool)) {}

void NicSource::start() {
  if (place_.device.empty()) fail("the nic counters need a kernel RDMA device, and none is in use");
  const fs::path device = place_.sys / "class/infiniband" / place_.device;
  if (!fs::is_directory(device))
    fail("the kernel has no device {} in {}", place_.device, device.parent_path().string());
  find_counters("hw_counters/", device / "hw_counters");
  for (const int port : place_.ports) {
    for (const char* kind : {"counters", "hw_counters"}) {
      find_counters(fmt::format("port{}/{}/", port, kind), device / "ports" / std::to_string(port) / kind);
    }
  }
  find_interface(device);
  if (counters_.empty() && interface_.empty()) {
    fail("{} has no counters ({}; {})", place_.device, device.string(), no_ethtool_);
  }
}

void NicSource::find_counters(const std::string& prefix, const fs::path& folder) {
  for (const fs::path& file : sorted_entries(folder)) {
    const std::optional<std::uint64_t> value = read_number(file);
    if (!value) continue;
    if (file.filename() == kLifespan) {
      lifespan_ms_ = std::max(lifespan_ms_, *value);
    } else {
      counters_.push_back({prefix + file.filename().string(), file});
    }
  }
}

// Finds the network interface of the first port whose driver has PCIe statistics.
void NicSource::find_interface(const fs::path& device) {
  std::vector<std::string> interfaces;
  for (const int port : place_.ports) {
    std::string name;
    std::ifstream(device / "ports" / std::to_string(port) / "gid_attrs/ndevs/0") >> name;
    if (!name.empty()) interfaces.push_back(name);
  }
  for (const fs::path& entry : sorted_entries(device / "device/net")) interfaces.push_back(entry.filename().string());
  no_ethtool_ = "no network interface belongs to " + place_.device;
  for (const std::string& interface : interfaces) {
    try {
      const Sums statistics = ethtool_(interface);
      const auto of_pcie = [](const auto& statistic) { return statistic.first.starts_with(kPciePrefix); };
      if (std::ranges::any_of(statistics, of_pcie)) {
        interface_ = interface;
        return;
      }
      no_ethtool_ = interface + ": the driver counts no PCIe stalls";
    } catch (const Error& error) {
      no_ethtool_ = error.what();
    }
  }
}

Sums NicSource::snapshot() {
  Sums values;
  for (const Counter& counter : counters_) {
    if (const auto value = read_number(counter.file)) values[counter.name] = *value;
  }
  if (interface_.empty()) return values;
  for (const auto& [name, value] : ethtool_(interface_)) {
    if (!name.starts_with(kPciePrefix)) continue;
    const bool gauge = std::ranges::find(kGauges, name) != kGauges.end();
    (gauge ? gauges_[name] : values["ethtool/" + name]) = value;
  }
  return values;
}

CounterReport NicSource::report(double) {
  const Counted all = counted();
  std::string blind =
      "PCIe transactions; misses of the NIC's caches (neo-host has them); port_xmit_data and port_rcv_data count "
      "4-byte words";
  if (lifespan_ms_ > 0) blind += fmt::format("; hw_counters may be {} ms old", lifespan_ms_);
  if (!gauges_.empty() && all.window_s < 1) blind += "; PCIe stalls are those of a second, longer than the window";
  CounterReport report = make_report(name(), blind, all, {});
  report.extra["device"] = place_.device;
  Json ethtool = Json::object();
  if (interface_.empty()) {
    ethtool["reason"] = no_ethtool_;
  } else {
    ethtool["interface"] = interface_;
    for (const auto& [name, percent] : gauges_) ethtool[name + "_percent_of_last_s"] = percent;
  }
  report.extra["ethtool"] = ethtool;
  return report;
}

std::string root_port_of(const std::string& device, const fs::path& sys) {
  std::error_code error;
  const fs::path path = fs::canonical(sys / "class/infiniband" / device / "device", error);
  // .../pci0000:3a/0000:3a:00.0/0000:3b:00.0: the root port is directly below the root complex.
  if (error) return "";
  for (auto part = path.begin(); part != path.end(); ++part) {
    const std::string complex = part->string();
    if (!complex.starts_with("pci") || complex.find(':') == std::string::npos) continue;
    const auto port = std::next(part);
    if (port == path.end() || std::next(port) == path.end()) return "";  // the adapter is not below a port
    const std::string name = port->string();                             // domain:bus:device.function
    return name.substr(name.find(':') + 1);
  }
  return "";
}

std::string pci_address_of(const std::string& device, const fs::path& sys) {
  std::error_code error;
  const std::string name = fs::canonical(sys / "class/infiniband" / device / "device", error).filename().string();
  return error || std::ranges::count(name, ':') != 2 ? "" : name;
}

namespace {

constexpr std::size_t kMaxStatistics = 65'536;

// An ethtool ioctl request with room after its header, aligned for 64-bit values.
template <class Header>
class EthtoolRequest {
 public:
  explicit EthtoolRequest(std::size_t room) : words_((sizeof(Header) + room + 7) / 8) {}
  Header& header() { return *reinterpret_cast<Header*>(words_.data()); }
  const char* data() const { return reinterpret_cast<const char*>(words_.data()) + sizeof(Header); }

 private:
  std::vector<std::uint64_t> words_;
};

void ethtool_ioctl(int socket, const std::string& interface, void* request) {
  ifreq name{};
  if (interface.size() >= sizeof name.ifr_name)
    fail("{}: an interface name has at most {} characters", interface, sizeof name.ifr_name - 1);
  std::copy(interface.begin(), interface.end(), name.ifr_name);
  name.ifr_data = static_cast<char*>(request);
  check(interface, ioctl(socket, SIOCETHTOOL, &name));
}

}  // namespace

Sums read_ethtool(const std::string& interface) {
  const Fd socket(check("socket", ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  EthtoolRequest<ethtool_sset_info> size(sizeof(std::uint32_t));
  size.header().cmd = ETHTOOL_GSSET_INFO;
  size.header().sset_mask = 1ull << ETH_SS_STATS;
  ethtool_ioctl(socket.get(), interface, &size.header());
  std::uint32_t count = 0;
  if (size.header().sset_mask != 0) std::memcpy(&count, size.data(), sizeof count);
  if (count == 0 || count > kMaxStatistics) fail("{}: the driver has no statistics", interface);

  EthtoolRequest<ethtool_gstrings> names(std::size_t{count} * ETH_GSTRING_LEN);
  names.header().cmd = ETHTOOL_GSTRINGS;
  names.header().string_set = ETH_SS_STATS;
  names.header().len = count;
  ethtool_ioctl(socket.get(), interface, &names.header());
  EthtoolRequest<ethtool_stats> values(std::size_t{count} * sizeof(std::uint64_t));
  values.header().cmd = ETHTOOL_GSTATS;
  values.header().n_stats = count;
  ethtool_ioctl(socket.get(), interface, &values.header());

  Sums statistics;
  for (std::uint32_t i = 0; i < std::min({count, names.header().len, values.header().n_stats}); ++i) {
    const char* name = names.data() + std::size_t{i} * ETH_GSTRING_LEN;
    std::uint64_t value = 0;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    statistics[std::string(name, strnlen(name, ETH_GSTRING_LEN))] = value;
  }
  return statistics;
}

namespace {

// True for fields that identify a counter; the other fields are counts.
bool identifies_counter(const std::string& key) {
  return key == "ifindex" || key == "ifname" || key == "port" || key == "cntn" || key == "pid" || key == "lqpn" ||
         key == "qp-type";
}

}  // namespace

Sums rdma_statistic_counts(const std::string& output) {
  const Json all = parse_json_text(output, "rdma -j statistic qp show");
  if (!all.is_array()) fail("rdma -j statistic qp show printed no list");
  Sums counts;
  for (const Json& counter : all) {
    const auto port = counter.find("port");
    const auto qps = counter.find("lqpn");
    if (port == counter.end() || !port->is_number_unsigned() || qps == counter.end() || !qps->is_array()) continue;
    const bool alone = qps->size() == 1 && qps->front().is_number_unsigned();
    const std::string owner = alone ? fmt::format("qp{}", qps->front().get<std::uint64_t>())
                                    : fmt::format("counter{}", counter.value("cntn", std::uint64_t{0}));
    for (const auto& [key, value] : counter.items()) {
      if (identifies_counter(key) || !value.is_number_unsigned()) continue;
      counts[fmt::format("port{}/{}/{}", port->get<std::uint64_t>(), owner, key)] = value.get<std::uint64_t>();
    }
  }
  return counts;
}

void RdmaStatisticSource::start() {
  if (device_.empty()) fail("the rdma-statistic counters need a kernel RDMA device, and none is in use");
  rdma_statistic_counts(output_of({"rdma", "-j", "statistic", "qp", "show"}));
}

Sums RdmaStatisticSource::snapshot() {
  Sums all;
  for (const int port : ports_) {
    all.merge(rdma_statistic_counts(
        output_of({"rdma", "-j", "statistic", "qp", "show", "link", fmt::format("{}/{}", device_, port)})));
  }
  return all;
}

CounterReport RdmaStatisticSource::report(double) {
  const Counted all = counted();
  if (all.raw.empty()) {
    fail("no QP of {} has a kernel counter; bind counters with `rdma statistic qp set link {}/{} auto type on`",
         device_, device_, ports_.empty() ? 1 : ports_.front());
  }
  CounterReport report = make_report(name(), "PCIe transactions; QPs that the kernel has bound to no counter", all, {});
  report.extra["device"] = device_;
  return report;
}

}  // namespace verbscope
