// `lookup_rate`: the rate of look-ups in a structure in this host's memory, one by one, in groups, or interleaved.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/text.hpp"
#include "lookups/chain.hpp"
#include "lookups/subject.hpp"
#include "machine/threads.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/memory_walk.hpp"

namespace verbscope::lookups {
namespace {

constexpr std::size_t kChunk = 1024;        // look-ups per call, if they are short
constexpr std::size_t kSteps = 1 << 15;     // approximate accesses per call, if look-ups are long
constexpr double kHotLines = 3072;          // 192 KB, which fits into the second-level cache
constexpr std::size_t kMinHotLookups = 32;  // look-ups; two batches of the usual length
constexpr int kHotRepetitions = 20;
constexpr std::size_t kChecked = 1 << 14;  // keys whose results are compared with the baseline

// A thread's sequence of look-ups. Each thread starts at another key. Structure and keys are read-only or belong to one
// thread.
class LookupStream {
 public:
  LookupStream(const Subject& subject, std::uint64_t start)
      : keys_(subject.keys()), chunk_(chunk_of(subject)), next_(start % keys_), reader_(subject.reader(chunk_)) {}

  std::uint64_t step(Variant variant, std::size_t batch) {
    const std::size_t count = std::min(chunk_, keys_ - next_);
    reader_->look_up(variant, batch, next_, count);
    next_ = next_ + count == keys_ ? 0 : next_ + count;
    return count;
  }

 private:
  static std::size_t chunk_of(const Subject& subject) {
    const auto wanted = static_cast<std::size_t>(kSteps / subject.accesses());
    return std::min(subject.keys(), std::clamp<std::size_t>(wanted, 128, kChunk));
  }

  std::size_t keys_;
  std::size_t chunk_;
  std::size_t next_;
  std::unique_ptr<KeyReader> reader_;
};

class ThreadWork final : public WorkloadOn<ThreadWork> {
 public:
  ThreadWork(const Subject& subject, Variant variant, std::size_t batch, std::uint64_t start)
      : stream_(subject, start), variant_(variant), batch_(batch) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    MeasuredInterval interval(tally, MeasuredInterval::kNoGoal);
    std::uint64_t ops = 0;
    while (!interval.see(node, control.phase.load(std::memory_order_relaxed), ops)) {
      ops += stream_.step(variant_, batch_);
      tally.done_ops.store(ops, std::memory_order_relaxed);
    }
  }

  bool active() const override { return true; }

 private:
  LookupStream stream_;
  Variant variant_;
  std::size_t batch_;
};

double nanos(Picos time, std::uint64_t count) {
  return to_seconds(time) * 1e9 / static_cast<double>(count);
}

// Nanoseconds per look-up if its lines are in the second-level cache: the cost without memory latency.
double hot_ns(const Subject& subject, Variant variant, std::size_t batch) {
  const auto wanted = static_cast<std::size_t>(kHotLines / subject.accesses());
  const std::size_t count = std::min(std::max(wanted, kMinHotLookups), subject.keys());
  const auto reader = subject.reader(count);
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < kHotRepetitions; ++i) {
    const Picos begin = TscClock::now();
    reader->look_up(variant, batch, 0, count);
    best = std::min(best, nanos(TscClock::now() - begin, count));
  }
  return best;
}

// Runs the three variants in turn, piece by piece, for `time`, and returns the median time per look-up of each.
// Other load on the host then affects all variants equally, and hardly changes the medians.
std::vector<double> alternating_medians(const Subject& subject, std::size_t batch, Picos time) {
  LookupStream stream(subject, subject.keys() / 2);
  std::vector<std::vector<double>> took(kVariants.size());
  const Picos end = TscClock::now() + time;
  do {
    for (std::size_t v = 0; v < kVariants.size(); ++v) {
      const Picos begin = TscClock::now();
      const std::uint64_t count = stream.step(kVariants[v], batch);
      took[v].push_back(nanos(TscClock::now() - begin, count));
    }
  } while (TscClock::now() < end);
  std::vector<double> medians;
  for (std::vector<double>& one : took) {
    std::ranges::nth_element(one, one.begin() + static_cast<std::ptrdiff_t>(one.size() / 2));
    medians.push_back(one[one.size() / 2]);
  }
  return medians;
}

constexpr std::size_t kProbeAccesses = 1 << 15;  // per measurement
constexpr int kProbeRepetitions = 9;
constexpr std::uint64_t kCachedBytes = 4096;  // fits into the first-level cache

// Walks over one chain. Every walk starts at a new place.
class ChainWalks {
 public:
  explicit ChainWalks(const Chain& chain) : chain_(chain) {}

  // Nanoseconds per access.
  double fastest_ns(Variant variant, std::size_t batch) {
    const std::size_t count = std::max<std::size_t>(batch, kProbeAccesses / chain_.depth());
    std::vector<std::uint32_t> starts(count), ends(count);
    double best = std::numeric_limits<double>::max();
    for (int i = 0; i < kProbeRepetitions; ++i) {
      for (std::uint32_t& start : starts) start = static_cast<std::uint32_t>(mix(++used_) & (chain_.places() - 1));
      HostNode node;
      const Picos begin = TscClock::now();
      look_up(node, chain_, variant, batch, starts, ends.data());
      const Picos took = TscClock::now() - begin;
      sink_ = std::accumulate(ends.begin(), ends.end(), sink_);
      best = std::min(best, to_seconds(took) * 1e9 / static_cast<double>(count * chain_.depth()));
    }
    return best;
  }

 private:
  const Chain& chain_;
  std::uint64_t used_ = 0;
  volatile std::uint32_t sink_ = 0;  // prevents optimisation of the look-ups
};

// Measures on the calling thread's core. Over a chain of about `bytes` (rounded down to a power of two, at least 4 KB)
// on the given pages: the latency of dependent accesses, and the time per independent access in the fastest of several
// ways. Over a 4 KB chain, which fits into the first-level cache: the cost of an access alone, in a group, and in turns
// of `batch` look-ups. Each is the minimum of several measurements, because other load on the host only adds time.
// `window` is copied to the result.
HostMemory probe_host(Bytes bytes, PageSize pages, std::size_t batch, double window) {
  HostMemory host;
  host.window = window;
  const Bytes size(std::bit_floor(std::max(bytes.value, kCachedBytes)));
  {
    const Chain dependent(size, 512, 1, pages);
    ChainWalks walks(dependent);
    host.latency_ns = walks.fastest_ns(Variant::baseline, 1);
    host.parallel_ns = host.latency_ns;
    for (const std::size_t lanes : {8, 12, 16, 24, 32}) {
      host.parallel_ns = std::min(host.parallel_ns, walks.fastest_ns(Variant::group, lanes));
    }
  }
  {
    const Chain independent(size, 1, 2, pages);
    host.parallel_ns = std::min(host.parallel_ns, ChainWalks(independent).fastest_ns(Variant::baseline, 1));
  }
  const Chain cached(Bytes(kCachedBytes), 512, 3, PageSize::kb4);
  ChainWalks walks(cached);
  host.cached_ns = walks.fastest_ns(Variant::baseline, 1);
  host.stage_ns = walks.fastest_ns(Variant::group, batch);
  host.switch_ns = walks.fastest_ns(Variant::interleaved, batch);
  return host;
}

class LookupRate final : public Benchmark {
 public:
  Description describe() const override {
    return {.name = "lookup_rate",
            .summary = "Rate of look-ups in a data structure of this host: one by one, in groups, or interleaved.",
            .example = "--structure chain --depth 16 --size 64M"};
  }

  void options(OptionTable& table) override {
    table.choice<Kind>("--structure", choice_.kind, kind_names(),
                       "data structure: a cuckoo table 2-8, a pointer chain, IPv4 prefixes (DIR-24-8), IPv6 prefixes, "
                       "or MICA's store");
    table.choice<Variant>(
        "--variant", variant_,
        {{"baseline", Variant::baseline}, {"group", Variant::group}, {"interleaved", Variant::interleaved}},
        "kind of look-up: one by one, in groups with prefetches stage by stage, or in coroutines that take turns");
    table.integer("--batch", batch_, 1u, static_cast<std::uint32_t>(kMaxBatch), "look-ups in progress at a time");
    table.bytes("-s,--size", size_, std::uint64_t{4096}, std::uint64_t{1} << 34,
                "size of the structure, for mica of its log (default: as in the papers, 48 MB to 1 GB)");
    table.integer("--depth", choice_.depth, 1u, 1u << 16, "memory accesses per look-up in a chain");
    table.choice<PageSize>(
        "--pages", choice_.pages,
        {{"4k", PageSize::kb4}, {"2m", PageSize::mb2}, {"transparent", PageSize::transparent}},
        "pages of the structure: 4 KB, reserved huge pages, or huge pages where the kernel provides them");
    table.integer("--reorder_window", window_, 0u, 1u << 16,
                  "instructions in flight of a core, for the model (documented: Sandy Bridge 168, Haswell 192, Skylake "
                  "and Zen 2 224, Zen 3 256, Zen 4 320, Zen 5 448)");
  }

  bool local() const override { return true; }
  bool moves_payloads() const override { return false; }

  void adjust(Options& options) override {
    if (size_) check_bytes(choice_.kind, *size_);
    if (choice_.depth != 1 && choice_.kind != Kind::chain) {
      fail_usage("--depth {}: only --structure chain has a depth", choice_.depth);
    }
    choice_.bytes = size_.value_or(default_bytes(choice_.kind));
    choice_.seed = options.seed;
    threads_ = options.threads;
  }

  Plan draft() const override { return {}; }
  QueueNeeds needs(const Operation&, Side) const override { return {}; }

  void prepare(const Plan& plan, int core) override {
    duration_ = plan.schedule.duration;
    core_ = core;
    on_core([this] {
      host_ = probe_host(Bytes(choice_.bytes), choice_.pages, batch_, window_);
      // A GET updates counters of its store, which belongs to one thread. Other structures are read-only and shared.
      const std::uint32_t copies = choice_.kind == Kind::mica ? threads_ : 1;
      for (std::uint32_t i = 0; i < copies; ++i) subjects_.push_back(make_subject(choice_));
      compare_results();
      measure_hot();
    });
    prediction_ = predict_threads();
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    const Subject& own = subject(setup.thread);
    return std::make_unique<ThreadWork>(own, variant_, batch_, setup.thread * (own.keys() / 7));
  }

  void finish(Outcome& outcome) const override {
    std::vector<double> took;
    on_core([&] { took = alternating_medians(subject(0), batch_, duration_); });
    Json& result = outcome.result;
    outcome.config["size"] = choice_.bytes;
    result["lookup_ns"] = 1e3 * threads_ / result.at("rate_mops").get<double>();
    result["accesses_per_lookup"] = subject(0).accesses();
    result["structure"] = subject(0).facts();
    result["results_compared"] = compared_;
    result["found_share"] = found_share_;
    result["host_memory"] = to_json(host_);
    Json& turns = result["in_turns"] = Json::object();
    for (std::size_t v = 0; v < kVariants.size(); ++v) turns[std::string(to_string(kVariants[v])) + "_ns"] = took[v];
    turns["interleaved_over_baseline"] = took[0] / took[2];
    turns["group_over_baseline"] = took[0] / took[1];
    turns["group_over_interleaved"] = took[2] / took[1];
    outcome.prediction = prediction_;
  }

  std::string report(const Json& r) const override {
    const Json& turns = r.at("in_turns");
    const auto number = [](const Json& json, const char* key) { return with_digits(json.at(key), 1); };
    std::string text = fmt::format(
        "lookup_rate on host: {} {}, batch {}, {} bytes, {} threads, {} accesses per look-up\n"
        "  {} Mops, {} ns per look-up over {:g} s\n"
        "  host: {} ns per dependent access, {} ns an independent one: at most {} times faster\n"
        "  in turns: baseline {} ns, group {} ns, interleaved {} ns: interleaved {} times as fast, group {}\n",
        kind_names().at(static_cast<std::size_t>(choice_.kind)).first, to_string(variant_), batch_, choice_.bytes,
        threads_, number(r, "accesses_per_lookup"), with_digits(r.at("rate_mops"), 3), number(r, "lookup_ns"),
        r.at("window_s").get<double>(), with_digits(host_.latency_ns, 1), with_digits(host_.parallel_ns, 1),
        with_digits(host_.at_once(), 1), number(turns, "baseline_ns"), number(turns, "group_ns"),
        number(turns, "interleaved_ns"), with_digits(turns.at("interleaved_over_baseline"), 2),
        with_digits(turns.at("group_over_baseline"), 2));
    const Json& p = prediction_;
    text += fmt::format("  model: baseline {} ns, group {} ns, interleaved {} ns, limited by {}; {}\n",
                        number(p, "baseline_ns"), number(p, "group_ns"), number(p, "interleaved_ns"),
                        p.at("binding").get<std::string>(), break_even_text(p));
    return text;
  }

 private:
  // As the words of --structure, in the order of Kind.
  static std::vector<std::pair<std::string, Kind>> kind_names() {
    return {{"cuckoo", Kind::cuckoo},
            {"chain", Kind::chain},
            {"lpm4", Kind::lpm4},
            {"lpm6", Kind::lpm6},
            {"mica", Kind::mica}};
  }

  // Measurements run on the core of the first thread.
  void on_core(const std::function<void()>& body) const {
    PinnedThread(core_, [&body](std::stop_token) { body(); }).join();
  }

  const Subject& subject(std::uint32_t thread) const {
    return *subjects_[std::min<std::size_t>(thread, subjects_.size() - 1)];
  }

  static std::string break_even_text(const Json& prediction) {
    const auto accesses = prediction.at("break_even_accesses").get<std::size_t>();
    return accesses == 0 ? "the baseline wins at any number of accesses"
                         : fmt::format("interleaving wins from {} accesses on", accesses);
  }

  // Throws Error if a variant returns other results than the baseline.
  void compare_results() {
    compared_ = std::min(kChecked, subject(0).keys());
    const auto expected = subject(0).reader(compared_), reader = subject(0).reader(compared_);
    expected->look_up(Variant::baseline, 1, 0, compared_);
    found_share_ = static_cast<double>(expected->found()) / static_cast<double>(compared_);
    for (const Variant variant : kVariants) {
      reader->look_up(variant, batch_, 0, compared_);
      if (!reader->same(*expected)) {
        fail("--variant {} with --batch {} returned other results than the baseline; this is a defect of lookup_rate",
             to_string(variant), batch_);
      }
    }
  }

  // Measures the cost of branches and turns with the look-ups of this structure.
  void measure_hot() {
    const double k = subject(0).accesses();
    compute_ns_ = std::max(0.0, hot_ns(subject(0), Variant::baseline, batch_) - k * host_.cached_ns);
    tuned_host_ = host_;
    tuned_host_.stage_ns = std::max(0.0, (hot_ns(subject(0), Variant::group, batch_) - compute_ns_) / k);
    tuned_host_.switch_ns = std::max(0.0, (hot_ns(subject(0), Variant::interleaved, batch_) - compute_ns_) / k);
  }

  // The bound of one thread, times the threads. The model does not include the memory bandwidth that cores share.
  Json predict_threads() const {
    const Subject& s = subject(0);
    const bool overlaps = s.access_instructions() > 0;
    MemoryWalk walk{.accesses = s.accesses(), .compute_ns = compute_ns_};
    walk.instructions = overlaps ? s.fixed_instructions() + s.accesses() * s.access_instructions() : 0;
    const WalkTimes times = predict_walk(tuned_host_, walk, batch_);
    const double ns = variant_ == Variant::baseline ? times.baseline_ns
                      : variant_ == Variant::group  ? times.group_ns
                                                    : times.interleaved_ns;
    Json prediction{{"model", "memory_walk"}, {"bound_mops", 1e3 * threads_ / ns}};
    prediction.update(to_json(times));
    prediction["compute_ns"] = compute_ns_;
    prediction["stage_ns"] = tuned_host_.stage_ns;
    prediction["switch_ns"] = tuned_host_.switch_ns;
    walk.instructions = overlaps ? s.fixed_instructions() : 0;
    prediction["break_even_accesses"] = break_even_accesses(tuned_host_, walk, s.access_instructions(), batch_);
    return prediction;
  }

  // The model of verbs does not apply.
  Prediction predict(const ClusterWire&, const Operation&, int) const override { return {}; }

  SubjectChoice choice_;
  std::optional<std::uint64_t> size_;
  Variant variant_ = Variant::interleaved;
  std::uint32_t batch_ = 16;
  std::uint32_t window_ = 224;
  HostMemory host_;
  HostMemory tuned_host_;  // with the stage and switch costs of this structure
  std::vector<std::unique_ptr<Subject>> subjects_;
  std::uint32_t threads_ = 1;
  int core_ = 0;
  Picos duration_{0};
  Json prediction_;
  double compute_ns_ = 0;
  double found_share_ = 0;
  std::size_t compared_ = 0;
};

}  // namespace
}  // namespace verbscope::lookups

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::lookups::LookupRate>(argc, argv);
}
