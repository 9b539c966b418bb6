// A sweep: one or more benchmarks and the points at which to run them (docs/sweeps.md). parse_sweep checks the form of
// the file only; check_sweep compares keys and values with the benchmark's description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json.hpp"
#include "harness/sweep/benchmarks.hpp"

namespace verbscope {

inline constexpr const char* kSweepSchema = "verbscope.sweep/1";
// Larger sweeps are refused: they are probably a mistake, and all points are held in memory.
inline constexpr std::uint64_t kMaxPoints = 20'000;
// Maximum number of options in fixed, vary, and each entry of points.
inline constexpr std::size_t kMaxOptions = 64;

// One entry of `points`: overrides of `fixed`, optionally limited to some fabrics.
struct SweepPoint {
  Json overrides = Json::object();
  std::vector<std::string> fabrics;  // empty: any
  std::string benchmark;             // empty: all of the sweep's
  std::string label;                 // name of its curve; empty: derived from its overrides
};

struct Sweep {
  std::string where;                    // file name, for messages
  std::vector<std::string> benchmarks;  // each runs all points
  std::string description;
  std::string figure;                // the figure of a paper that it reproduces, "atc16 Fig 12"; empty: none
  std::vector<std::string> fabrics;  // empty: any
  Json fixed = Json::object();
  std::vector<std::pair<std::string, Json>> fixed_on;  // by fabric or kind: overrides `fixed`, overridden by `points`
  std::vector<std::pair<std::string, std::vector<Json>>> vary;  // in the file's order; the last key varies fastest
  std::vector<SweepPoint> points;                               // empty: one entry without overrides
  std::vector<std::string> show{"rate_mops"};                   // result keys shown as columns of a table of curves
  int repetitions = 1;
  std::uint64_t seed = 1;
  std::map<std::string, BenchmarkSpec> specs;  // by benchmark: the specs that check_sweep has used
};

// One run of a benchmark.
struct Point {
  std::string benchmark{};
  Json params = Json::object();  // options that are set, sorted by name, formulas replaced by their values
  int repetition = 0;
  std::uint64_t seed = 1;  // the sweep's seed plus the repetition
  std::size_t entry = 0;   // index in the sweep's `points`; 0 if that is empty
  std::string label{};     // of that entry
  std::size_t place = 0;   // index among the sweep's points in the file's order; equal for repetitions
};

// The identity of a point for --resume: {benchmark, params, repetition, seed, fabric}.
Json point_identity(const Point& point, const std::string& fabric);

// The properties of the sweep that determine how a point's record is shown: {"sweep", its file; "place"; "label", of
// the point's entry in `points`; "along", the last key of `vary`; "figure"; "show", keys other than the rate}. Empty
// ones are omitted.
Json sweep_properties(const Sweep& sweep, const Point& point);

// Throws one line "where: ...", with the line number for malformed JSON, else with the key.
Sweep parse_sweep(std::string_view text, const std::string& where);

// True for options that the harness sets for every point. A sweep must not set them.
bool is_reserved_option(std::string_view option);

// Converts values to the form of records ("4k" to 4096). `spec` describes one of the sweep's benchmarks. Throws one
// line for an unknown key and for a value, formula or seed that the benchmark does not accept.
void check_sweep(Sweep& sweep, const BenchmarkSpec& spec);

// `--set key=value`: removes the key from fixed, vary and points, and sets it in fixed.
void override_key(Sweep& sweep, const std::string& key, const Json& value);
// `--vary key=value,value`: removes the key likewise and appends it to vary. The key that was added last varies
// fastest.
void vary_key(Sweep& sweep, const std::string& key, std::vector<Json> values);

// Returns all points to run on `fabric`, benchmark by benchmark: for each entry of `points` for this fabric, the cross
// product of `vary`. Duplicates are removed. With repetitions, each repetition runs all points in an order shuffled by
// its seed, so that drift during a run is spread over the points. Without repetitions, points keep the order of the
// file. On "verbs" the hosts file determines the clients, so the sweep's `clients` is ignored. Throws if no point is
// for this fabric, or if a formula has no value that its option accepts.
std::vector<Point> expand_sweep(const Sweep& sweep, const std::string& fabric);

// The fabrics of the sweep or of its points that need no hosts: each "sim:NAME", "null" and "host", in the file's
// order.
std::vector<std::string> fabrics_without_hosts(const Sweep& sweep);

// True if `fabrics` contains `fabric` ("sim:cib" also matches a profile file .../cib.json) or its kind ("sim", "verbs",
// "null"), or is empty.
bool fabric_allowed(const std::vector<std::string>& fabrics, const std::string& fabric);

}  // namespace verbscope
