#include "counters/rdma_statistic.hpp"

#include "common/error.hpp"
#include "counters/tool_process.hpp"

namespace verbscope {

namespace {

// Fields that describe a counter, as opposed to counts.
bool is_fact(const std::string& key) {
  return key == "ifindex" || key == "ifname" || key == "port" || key == "cntn" || key == "pid" || key == "lqpn" ||
         key == "qp-type";
}

}  // namespace

Sums rdma_statistic_counts(const std::string& output) {
  const Json all = parse_json_text(output, "rdma -j statistic qp show");
  if (!all.is_array()) fail("rdma -j statistic qp show printed no list");
  Sums counts;
  for (const Json& one : all) {
    const auto port = one.find("port");
    const auto qps = one.find("lqpn");
    if (port == one.end() || !port->is_number_unsigned() || qps == one.end() || !qps->is_array()) continue;
    const bool alone = qps->size() == 1 && qps->front().is_number_unsigned();
    const std::string owner = alone ? fmt::format("qp{}", qps->front().get<std::uint64_t>())
                                    : fmt::format("counter{}", one.value("cntn", std::uint64_t{0}));
    for (const auto& [key, value] : one.items()) {
      if (is_fact(key) || !value.is_number_unsigned()) continue;
      counts[fmt::format("port{}/{}/{}", port->get<std::uint64_t>(), owner, key)] = value.get<std::uint64_t>();
    }
  }
  return counts;
}

void RdmaStatisticSource::start() {
  if (device_.empty()) fail("no device of the kernel is used");
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
    fail("no QP of {} has a counter: `rdma statistic qp set link {}/{} auto type on` binds them", device_, device_,
         ports_.empty() ? 1 : ports_.front());
  }
  CounterReport report = make_report(name(), "PCIe transactions; QPs that the kernel has bound to no counter", all, {});
  report.extra["device"] = device_;
  return report;
}

}  // namespace verbscope
