// Counters of the CPU through PAPI: what the benchmark's threads cost in cycles, instructions and cache misses, and,
// where the CPU has counters outside its cores that PAPI knows, its PCIe events.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "counters/papi_library.hpp"
#include "counters/snapshot_source.hpp"

namespace verbscope {

// PCIe events of one kind of CPU, in counters that it has many boxes of.
struct UncoreEvents {
  std::string cpus;
  std::string box;                                           // "{}" is the box: "hswep_unc_cbo{}"
  std::vector<std::pair<std::string, std::string>> columns;  // event of a box -> the column that it is added to
  std::uint64_t unit;                                        // events that one count stands for
  std::uint32_t turns;  // events of a box take so many turns, as they share counters
  std::vector<EventRule> rules;
  std::string blind;
};
const std::vector<UncoreEvents>& uncore_events();

// One core of each socket.
std::vector<int> one_core_a_socket(const std::string& sys = "/sys");

class PapiSource final : public SnapshotSource {
 public:
  // `uncore_taken`, asked at the start: another program counts in the uncore, which has one user at a time.
  PapiSource(PapiLibrary& library, std::function<bool()> uncore_taken, std::vector<int> sockets = one_core_a_socket());
  PapiSource(const PapiSource&) = delete;
  PapiSource& operator=(const PapiSource&) = delete;
  ~PapiSource() override;

  std::string name() const override { return "papi"; }
  void start() override;
  void attach(const std::vector<int>& threads) override;
  CounterReport report(double ops_per_s) override;

 private:
  struct Set {
    int id = 0;
    std::uint64_t unit = 1;
    std::vector<std::string> columns;  // the column of each event
  };
  Set open_thread(int thread);
  void start_uncore();
  bool add_boxes(const UncoreEvents& events, int core, Set& set);
  Sums snapshot() override;

  PapiLibrary& library_;
  std::function<bool()> uncore_taken_;
  std::vector<int> sockets_;
  std::vector<Set> threads_, uncore_;
  std::string no_threads_, no_uncore_;  // why there are none
  std::vector<std::string> absent_;     // columns of threads that are not counted, and why
  const UncoreEvents* family_ = nullptr;
};

}  // namespace verbscope
