#include "harness/learn/point_traits.hpp"

#include <algorithm>

#include "analysis/points.hpp"
#include "harness/learn/parameters.hpp"

namespace verbscope {
namespace {

constexpr std::uint64_t kLine = 64;
// More QPs than any adapter keeps near its units, more outstanding operations than small WQE caches hold.
constexpr double kSomeQps = 32, kSomeOutstanding = 128;
constexpr double kUsualDepth = 128;  // --tx_depth of the benchmarks

double option(const Point& point, const char* name, double fallback) {
  return number_at(point.params, name).value_or(fallback);
}

bool is_among(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* word) { return text == word; });
}

}  // namespace

std::string kind_of(const Point& point) {
  if (point.benchmark == "verb_latency") return "latency";
  if (point.benchmark == "atomic_rate") return "atomic rate";
  if (point.params.contains("threads_per_qp") && option(point, "threads_per_qp", 1) > 1) return "shared QPs";
  const PointLoad load = load_of(point);
  if (load.qps >= 4 * kSomeQps) return "many QPs";
  if (point.benchmark == "write_rate") return option(point, "window", 0) > 0 ? "WRITEs outstanding" : "WRITE rate";
  if (point.benchmark == "read_rate") return option(point, "window", 0) > 0 ? "READs outstanding" : "READ rate";
  if (point.benchmark == "send_rate") return "SEND rate";
  if (point.benchmark == "recv_rate") return "RECV rate";
  return point.benchmark;
}

PointLoad load_of(const Point& point) {
  const double threads = option(point, "threads", 1), machine_qps = threads * option(point, "qp", 1);
  const double window = option(point, "window", 0), depth = option(point, "tx_depth", kUsualDepth);
  const bool per_thread = point.params.value("wait", "any") != "any";
  if (point.benchmark == "verb_latency") return {.outstanding = 1, .qps = 1};
  if (point.benchmark == "atomic_rate")
    return {.outstanding = machine_qps * option(point, "window", 16), .qps = machine_qps};
  if (point.benchmark == "all_to_all") {
    const double machines = option(point, "machines", 2), qps = threads * option(point, "vms", 1) * machines;
    return {.outstanding = window > 0 ? window * threads : depth * qps, .qps = qps, .machines = machines};
  }
  if (window > 0) return {.outstanding = window * (per_thread ? threads : machine_qps), .qps = machine_qps};
  return {.outstanding = depth * machine_qps, .qps = machine_qps};
}

bool needs_long_interval(const Point& point, double figure, double us) {
  constexpr double kFew = 4;
  const PointLoad load = load_of(point);
  const auto signaled = number_at(point.params, "cq_mod");
  if (!signaled || load.outstanding == 1) return false;
  const bool fills_queue = !point.params.contains("window");
  return (fills_queue && *signaled <= kFew) || *signaled * load.qps / figure > us;
}

std::uint32_t properties_of(const Point& point, std::uint64_t mtu) {
  const std::string& name = point.benchmark;
  if (!is_among(name, {"verb_latency", "write_rate", "read_rate", "send_rate", "recv_rate", "atomic_rate"}))
    return kAllProperties;
  const std::string verb = point.params.value("verb", "write"), connection = point.params.value("connection", "RC");
  const bool latency = name == "verb_latency";
  const bool read = name == "read_rate" || (latency && verb == "read");
  const bool atomic = name == "atomic_rate" || (latency && is_among(verb, {"fetch_add", "compare_swap"}));
  const bool send = is_among(name, {"send_rate", "recv_rate"}) || (latency && verb == "send");
  const double size = point.params.value("header_only", false) ? 0 : option(point, "size", latency ? 8 : 64);
  const double inlined = option(point, "inline_size", latency ? 220 : 0);
  const PointLoad load = load_of(point);
  std::uint32_t out = kAnyOperation;
  const auto set = [&out](Property property, bool on) { out |= on ? static_cast<std::uint32_t>(property) : 0U; };
  set(kReliable, connection == "RC");
  set(kRead, read);
  set(kAtomic, atomic);
  set(kRecv, send || point.params.value("write_with_imm", false));
  set(kGather, !read && !atomic && size > inlined);
  set(kLarge, size > kLine);
  set(kPackets, size > static_cast<double>(mtu));
  set(kManyQps, load.qps > kSomeQps);
  set(kDeep, load.outstanding > kSomeOutstanding);
  set(kThreads, option(point, "threads", 1) > 1);
  set(kOverlap, !latency);
  return out;
}

bool same_point(const Point& a, const Point& b) {
  return a.benchmark == b.benchmark && a.params == b.params;
}

std::string figure_key(const Record& record) {
  if (record.benchmark != "verb_latency") return "rate_mops";
  return number_at(record.result, "lat_mean_ns") ? "lat_mean_ns" : "lat_p50_ns";
}

std::string figure_key(const Point& candidate) {
  return candidate.benchmark == "verb_latency" ? "lat_mean_ns" : "rate_mops";
}

double expected_figure(const Point& point) {
  constexpr double kLatencyNs = 2000, kMopsPerThread = 5, kMegabytesPerSecond = 10'000;
  if (point.benchmark == "verb_latency") return kLatencyNs;
  const double cpu = kMopsPerThread * option(point, "threads", 1);
  const double wire = kMegabytesPerSecond / std::max(1.0, option(point, "size", 64));
  const double waiting = load_of(point).outstanding / kLatencyNs * 1e3;
  return std::min({cpu, wire, waiting});
}

std::optional<double> measured_value(const Record& record) {
  if (record.status == RecordStatus::failed) return std::nullopt;
  const std::optional<double> value = number_at(record.result, figure_key(record));
  return value && *value > 0 ? value : std::nullopt;
}

}  // namespace verbscope
