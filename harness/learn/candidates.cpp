#include "harness/learn/candidates.hpp"

#include <algorithm>
#include <array>

#include "analysis/points.hpp"
#include "harness/learn/parameters.hpp"

namespace verbscope {
namespace {

constexpr std::uint64_t kLine = 64;
// More QPs than any adapter keeps near its units, more outstanding operations than small WQE caches hold.
constexpr double kSomeQps = 32, kSomeOutstanding = 128;
constexpr double kUsualDepth = 128;  // --tx_depth of the benchmarks
// QPs of each of many threads where all units of a responder are to limit: one unit at a time serves a QP. Shallow
// queues keep the simulation short.
constexpr int kQpsPerThread = 4, kDepthOfMany = 32;
// Operations that fill any link with payloads of these sizes. More measure the same, and take several times as long to
// simulate until all are under way.
constexpr std::array kLargeSizes = {4096, 16384};
constexpr int kLargeOutstanding = 32;

class Pool {
 public:
  explicit Pool(const CandidateFacts& facts) : facts_(facts) {
    for (const int threads : {1, 2, 4, 8, 14}) {
      if (threads < facts.cores) threads_.push_back(threads);
    }
    threads_.push_back(std::min(facts.cores, kMostThreads));
  }

  void add(const char* benchmark, Json params) {
    if (const auto inlined = number_at(params, "inline_size"); inlined && *inlined > double(facts_.max_inline)) return;
    Point point{.benchmark = benchmark};
    for (const auto& key : sorted_keys(params)) point.params[key] = params[key];
    out_.push_back({.point = point, .kind = kind_of(point)});
  }

  int most() const { return threads_.back(); }
  int some() const { return std::min(facts_.cores, 4); }
  const std::vector<int>& threads() const { return threads_; }
  std::vector<Candidate> take() { return std::move(out_); }

 private:
  static constexpr int kMostThreads = 12;  // more take long to simulate, and other resources are the limit

  static std::vector<std::string> sorted_keys(const Json& params) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : params.items()) keys.push_back(key);
    std::ranges::sort(keys);
    return keys;
  }

  CandidateFacts facts_;
  std::vector<int> threads_;
  std::vector<Candidate> out_;
};

void add_latencies(Pool& pool) {
  for (const int size : {8, 64, 256, 1024, 4096, 16384, 65536}) {
    pool.add("verb_latency", {{"verb", "write"}, {"size", size}, {"inline_size", 0}});
    pool.add("verb_latency", {{"verb", "read"}, {"size", size}});
  }
  for (const int size : {8, 64, 128})
    pool.add("verb_latency", {{"verb", "write_inline"}, {"size", size}, {"inline_size", size}});
  for (const int size : {8, 64, 1024}) {
    pool.add("verb_latency", {{"verb", "send"}, {"size", size}, {"inline_size", 0}});
    pool.add("verb_latency", {{"verb", "send"}, {"size", size}, {"inline_size", 0}, {"connection", "UC"}});
  }
  pool.add("verb_latency", {{"verb", "fetch_add"}, {"size", 8}});
}

void add_writes(Pool& pool) {
  for (const char* connection : {"UC", "RC"}) {
    for (const int list : {1, 4, 16}) {
      for (const int size : {16, 64, 128, 256}) {
        for (const int threads : pool.threads()) {
          pool.add("write_rate", {{"connection", connection},
                                  {"post_list", list},
                                  {"size", size},
                                  {"inline_size", size},
                                  {"threads", threads}});
        }
      }
    }
    for (const int list : {1, 16}) {
      for (const int size : {16, 64, 256, 512, 1024, 2048}) {
        for (const int threads : {1, pool.some(), pool.most()}) {
          pool.add("write_rate", {{"connection", connection},
                                  {"post_list", list},
                                  {"size", size},
                                  {"inline_size", 0},
                                  {"threads", threads}});
        }
      }
      for (const int size : kLargeSizes) {
        pool.add("write_rate", {{"connection", connection},
                                {"post_list", list},
                                {"size", size},
                                {"inline_size", 0},
                                {"threads", 1},
                                {"tx_depth", kLargeOutstanding}});
      }
    }
  }
  for (const int window : {1, 2, 4, 8, 16, 32}) {
    for (const int threads : {1, pool.some(), pool.most()}) {
      pool.add("write_rate", {{"size", 32}, {"inline_size", 32}, {"threads", threads}, {"window", window}});
      pool.add("write_rate", {{"size", 32}, {"inline_size", 0}, {"threads", threads}, {"window", window}});
    }
  }
  for (const int signaled : {1, 4}) {
    pool.add(
        "write_rate",
        {{"connection", "UC"}, {"size", 16}, {"inline_size", 16}, {"cq_mod", signaled}, {"threads", 1}, {"qp", 4}});
    pool.add("write_rate", {{"connection", "UC"},
                            {"size", 16},
                            {"inline_size", 16},
                            {"cq_mod", signaled},
                            {"post_list", 16},
                            {"threads", 1},
                            {"qp", 4}});
  }
  for (const int size : {16, 64, 256, 1024}) {
    for (const char* connection : {"UC", "RC"}) {
      pool.add("write_rate", {{"direction", "in"},
                              {"connection", connection},
                              {"size", size},
                              {"inline_size", 0},
                              {"post_list", 16},
                              {"threads", pool.most()},
                              {"qp", kQpsPerThread},
                              {"tx_depth", kDepthOfMany}});
    }
  }
}

void add_many_qps(Pool& pool) {
  for (const int qps : {2, 4, 8, 16, 32, 64, 128}) {
    pool.add("write_rate", {{"size", 32}, {"inline_size", 32}, {"threads", pool.most()}, {"qp", qps}, {"window", 2}});
    pool.add("read_rate", {{"size", 32}, {"threads", pool.most()}, {"qp", qps}, {"window", 2}});
    pool.add("write_rate",
             {{"size", 32}, {"inline_size", 32}, {"threads", 1}, {"qp", qps}, {"window", 8}, {"wait", "oldest"}});
    pool.add("write_rate", {{"connection", "UC"},
                            {"size", 16},
                            {"inline_size", 16},
                            {"threads", 1},
                            {"qp", qps},
                            {"post_list", 16},
                            {"tx_depth", 32}});
  }
}

void add_reads(Pool& pool) {
  for (const char* direction : {"out", "in"}) {
    for (const int size : {16, 256, 1024}) {
      for (const int threads : {1, pool.some(), pool.most()}) {
        pool.add("read_rate",
                 {{"direction", direction}, {"size", size}, {"threads", threads}, {"qp", 4}, {"tx_depth", 32}});
      }
    }
    for (const int size : kLargeSizes) {
      pool.add(
          "read_rate",
          {{"direction", direction}, {"size", size}, {"threads", 1}, {"qp", 4}, {"tx_depth", kLargeOutstanding / 4}});
    }
  }
  for (const int window : {1, 2, 4, 8, 16}) {
    for (const int threads : {1, pool.some(), pool.most()})
      pool.add("read_rate", {{"size", 32}, {"threads", threads}, {"window", window}});
  }
  for (const int outstanding : {8, 16, 24, 32, 64, 96}) {
    pool.add("read_rate",
             {{"size", 32}, {"threads", pool.most()}, {"qp", 6}, {"window", outstanding}, {"wait", "oldest"}});
    pool.add("read_rate", {{"size", 32},
                           {"threads", pool.most()},
                           {"qp", 8},
                           {"window", outstanding},
                           {"wait", "all"},
                           {"post_list", 8}});
  }
}

void add_deep(Pool& pool) {
  for (const int depth : {16, 32, 64, 128, 256}) {
    for (const char* connection : {"UC", "RC"}) {
      pool.add("write_rate", {{"connection", connection},
                              {"size", 64},
                              {"inline_size", 64},
                              {"threads", pool.most()},
                              {"qp", 4},
                              {"tx_depth", depth}});
    }
    pool.add(
        "write_rate",
        {{"size", 64}, {"inline_size", 0}, {"threads", pool.most()}, {"qp", 4}, {"tx_depth", depth}, {"post_list", 8}});
  }
}

void add_sends(Pool& pool) {
  for (const char* connection : {"UD", "UC", "RC"}) {
    for (const int list : {1, 16}) {
      for (const int threads : {1, pool.some(), pool.most()}) {
        for (const char* benchmark : {"send_rate", "recv_rate"}) {
          pool.add(benchmark,
                   {{"connection", connection}, {"header_only", true}, {"post_list", list}, {"threads", threads}});
          pool.add(benchmark, {{"connection", connection},
                               {"size", 32},
                               {"inline_size", 32},
                               {"post_list", list},
                               {"threads", threads}});
          pool.add(benchmark, {{"connection", connection},
                               {"size", 512},
                               {"inline_size", 0},
                               {"post_list", list},
                               {"threads", threads}});
        }
      }
      for (const int size : {8, 32, 128}) {
        pool.add("recv_rate", {{"connection", connection},
                               {"size", size},
                               {"inline_size", size},
                               {"post_list", list},
                               {"threads", pool.most()},
                               {"qp", kQpsPerThread},
                               {"tx_depth", kDepthOfMany}});
      }
    }
  }
  for (const int list : {1, 4, 64})
    pool.add("recv_rate",
             {{"connection", "UD"}, {"header_only", true}, {"post_list", 16}, {"recv_list", list}, {"threads", 1}});
  for (const int qps : {2, 4, 8}) {
    pool.add("recv_rate",
             {{"connection", "UD"}, {"header_only", true}, {"post_list", 16}, {"threads", 1}, {"qp", qps}});
    pool.add("send_rate",
             {{"connection", "UD"}, {"header_only", true}, {"post_list", 16}, {"threads", 1}, {"qp", qps}});
    pool.add("send_rate",
             {{"connection", "UD"}, {"header_only", true}, {"post_list", 64}, {"threads", 1}, {"qp", qps}});
  }
}

void add_atomics(Pool& pool) {
  for (const int counters : {1, 16, 4096}) {
    for (const int threads : {1, pool.some(), pool.most()}) {
      pool.add("atomic_rate", {{"counters", counters}, {"threads", threads}, {"qp", 2}});
    }
  }
  pool.add("atomic_rate", {{"counters", 4096}, {"threads", pool.most()}, {"qp", 8}});
  for (const int window : {1, 4}) pool.add("atomic_rate", {{"counters", 4096}, {"threads", 1}, {"window", window}});
}

void add_shared(Pool& pool) {
  for (const int threads : {2, 4, 8}) {
    if (threads > pool.most()) continue;
    pool.add("write_rate", {{"size", 16},
                            {"inline_size", 16},
                            {"threads", threads},
                            {"threads_per_qp", threads},
                            {"qp", 4},
                            {"window", 16},
                            {"wait", "oldest"}});
    pool.add("read_rate", {{"size", 16},
                           {"threads", threads},
                           {"threads_per_qp", threads},
                           {"qp", 4},
                           {"window", 16},
                           {"wait", "oldest"}});
  }
}

double option(const Point& point, const char* name, double fallback) {
  return number_at(point.params, name).value_or(fallback);
}

bool is_among(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* word) { return text == word; });
}

}  // namespace

std::vector<Candidate> candidate_points(const CandidateFacts& facts) {
  Pool pool(facts);
  add_latencies(pool);
  add_writes(pool);
  add_reads(pool);
  add_many_qps(pool);
  add_deep(pool);
  add_sends(pool);
  add_atomics(pool);
  add_shared(pool);
  return pool.take();
}

std::vector<Candidate> survey_points(const CandidateFacts& facts) {
  Pool pool(facts);
  // A slow CPU: one thread posts to several QPs, so that no unit of the adapter is the limit.
  for (const int list : {1, 16}) {
    pool.add("write_rate", {{"connection", "UC"},
                            {"post_list", list},
                            {"size", 16},
                            {"inline_size", 16},
                            {"threads", 1},
                            {"qp", 8},
                            {"tx_depth", 64}});
  }
  pool.add("read_rate", {{"size", 16}, {"threads", 1}, {"qp", 8}, {"tx_depth", 32}});
  // A slow adapter, slot or port.
  pool.add("write_rate",
           {{"connection", "UC"}, {"size", 16}, {"inline_size", 16}, {"post_list", 16}, {"threads", pool.most()}});
  pool.add("verb_latency", {{"verb", "write"}, {"size", 64}, {"inline_size", 0}});
  pool.add("read_rate", {{"direction", "out"}, {"size", 1024}, {"threads", pool.some()}, {"qp", 4}, {"tx_depth", 32}});
  pool.add("recv_rate", {{"connection", "UD"}, {"header_only", true}, {"post_list", 16}, {"threads", 1}});
  return pool.take();
}

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

std::uint32_t properties_of(const Point& point, const CandidateFacts& facts) {
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
  set(kPackets, size > static_cast<double>(facts.mtu));
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
