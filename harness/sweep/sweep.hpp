// A sweep: benchmarks, mostly one, and the points at which to run them (docs/sweeps.md). Parsing knows the file's form
// only; check_sweep compares keys and values with what the benchmark says of itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json.hpp"
#include "harness/sweep/benchmark_spec.hpp"

namespace verbscope {

inline constexpr const char* kSweepSchema = "verbscope.sweep/1";
// A sweep that asks for more points than this is refused: it is a slip of the pen, and the memory is finite.
inline constexpr std::uint64_t kMaxPoints = 20'000;
// The most options that fixed, vary and each entry of points may have.
inline constexpr std::size_t kMaxOptions = 64;

// One entry of `points`: overrides of `fixed`, perhaps for some fabrics only.
struct SweepPoint {
  Json overrides = Json::object();
  std::vector<std::string> fabrics;  // empty: any
  std::string benchmark;             // empty: each of the sweep's
  std::string label;                 // names its curve; empty: its overrides do
};

struct Sweep {
  std::string where;                    // file name, for messages
  std::vector<std::string> benchmarks;  // the points are those of each
  std::string description;
  std::string figure;                // the figure of a paper that it makes, "atc16 Fig 12"; empty: none
  std::vector<std::string> fabrics;  // empty: any
  Json fixed = Json::object();
  std::vector<std::pair<std::string, Json>> fixed_on;           // by fabric or kind: over `fixed`, below `points`
  std::vector<std::pair<std::string, std::vector<Json>>> vary;  // in the file's order; the last turns fastest
  std::vector<SweepPoint> points;                               // empty: one without overrides
  std::vector<std::string> show{"rate_mops"};                   // result keys that a table of curves has
  int repetitions = 1;
  std::uint64_t seed = 1;
  std::map<std::string, BenchmarkSpec> specs;  // by benchmark, those that check_sweep has compared it with
};

// One run of a benchmark.
struct Point {
  std::string benchmark{};
  Json params = Json::object();  // options given, sorted by name, formulas as their values
  int repetition = 0;
  std::uint64_t seed = 1;  // the sweep's seed plus the repetition
  std::size_t entry = 0;   // its place in the sweep's `points`; 0 when there are none
  std::string label{};     // of that entry
  std::size_t place = 0;   // among the points of the sweep in the file's order; repetitions share it
};

// The identity of a point for --resume: {benchmark, params, repetition, seed, fabric}.
Json point_identity(const Point& point, const std::string& fabric);

// What of the sweep bears on how a point's record is shown: {"sweep", its file; "place"; "label", of its entry of
// `points`; "along", the last key of `vary`; "figure"; "show", beside the rate}. Those that are empty are left out.
Json point_standing(const Sweep& sweep, const Point& point);

// Throws one line "where: ..." (with the line of the file for malformed JSON, else with the key).
Sweep parse_sweep(std::string_view text, const std::string& where);

// Options that the harness sets by itself for every point: no sweep may.
bool is_reserved_option(std::string_view option);

// Brings values to the form in which records have them ("4k" to 4096). Throws one line for a key that the benchmark,
// one of the sweep's, has not, or a value, a formula or a seed that it cannot take.
void check_sweep(Sweep& sweep, const BenchmarkSpec& spec);

// `--set key=value`: the key is taken out of fixed, vary and points, and fixed to the value.
void override_key(Sweep& sweep, const std::string& key, const Json& value);
// `--vary key=value,value`: likewise, and varied over the values; the key varied last turns fastest.
void vary_key(Sweep& sweep, const std::string& key, std::vector<Json> values);

// Every point to run on `fabric`: for each of `points` that is for it, the cross product of `vary`; all those of one
// benchmark, then those of the next. Equal points appear once. Repetitions are rounds over all of them, each round in
// an order shuffled by the seed of its points, so that what drifts during a run is spread over the points; a sweep
// without repetitions keeps the order of the file. On "verbs" the hosts are the clients: the sweep's `clients` are left
// out. Throws when nothing of the sweep is for this fabric, and for a formula without a value that its option can have.
std::vector<Point> expand_sweep(const Sweep& sweep, const std::string& fabric);

// The fabrics of the sweep, or those of its points, on which it can run without being told where: each "sim:NAME",
// "null" and "host", in the file's order.
std::vector<std::string> own_places(const Sweep& sweep);

// True if the list of `fabrics` has `fabric`: an entry equal to it ("sim:cib", also for a profile file .../cib.json),
// or its kind ("sim", "verbs", "null"). An empty list has every one.
bool fabric_allowed(const std::vector<std::string>& fabrics, const std::string& fabric);

}  // namespace verbscope
