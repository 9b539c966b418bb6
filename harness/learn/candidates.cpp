#include "harness/learn/candidates.hpp"

#include <algorithm>
#include <array>

#include "analysis/points.hpp"
#include "harness/learn/point_traits.hpp"

namespace verbscope {
namespace {

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

}  // namespace verbscope
