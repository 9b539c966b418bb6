// CPU counters from PAPI: cycles, instructions and cache misses of the benchmark's threads, and the CPU's PCIe events
// if it has uncore counters that PAPI supports.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "counters/source.hpp"

namespace verbscope {

enum class PapiAdd {
  added,
  absent,   // the machine does not have this event
  no_room,  // the machine has it, but not enough counters besides those of the set
};

// The parts of PAPI's library that are used, as event sets. Tests replace them, so they need no CPU with uncore
// counters. Every failure throws Error with PAPI's text. Used by one thread at a time.
class PapiLibrary {
 public:
  virtual ~PapiLibrary() = default;
  // Opens a set of events of a component: "perf_event" (cores; attached to a thread of this process) or
  // "perf_event_uncore". `multiplexed`: events can take turns, and their counts are scaled up.
  virtual int open(const std::string& component, std::optional<int> thread, bool multiplexed) = 0;
  // `reason`: PAPI's text if the event was not added.
  virtual PapiAdd add(int set, const std::string& event, std::string& reason) = 0;
  virtual void start(int set) = 0;
  // The counts, in the order in which events were added.
  virtual std::vector<long long> read(int set) = 0;
  virtual void close(int set) noexcept = 0;
  // Frees the library's data about the calling thread, which may then end. Precondition: its sets are closed.
  virtual void forget_thread() noexcept = 0;
};

// The real library, initialised at its first use. In a build without PAPI its open() throws Error.
PapiLibrary& papi_library();

// PCIe events of one CPU family. A CPU has several uncore boxes, and each box counts them.
struct UncoreEvents {
  std::string cpus;
  std::string box;                                           // "{}" is the number of the box: "hswep_unc_cbo{}"
  std::vector<std::pair<std::string, std::string>> columns;  // event of a box -> the column to which it is added
  std::uint64_t unit;                                        // events per count
  std::uint32_t turns;  // the events of a box share counters and take this many turns
  std::vector<EventRule> rules;
  std::string blind;
};
const std::vector<UncoreEvents>& uncore_events();

// One core of each socket.
std::vector<int> one_core_per_socket(const std::string& sys = "/sys");

class PapiSource final : public SnapshotSource {
 public:
  // `uncore_taken`: true if another program counts in the uncore, which allows only one user. Called by start().
  PapiSource(PapiLibrary& library, std::function<bool()> uncore_taken,
             std::vector<int> sockets = one_core_per_socket());
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
  std::string no_threads_, no_uncore_;  // reason if there are none
  std::vector<std::string> absent_;     // columns that are not counted for threads, with the reason
  const UncoreEvents* family_ = nullptr;
};

}  // namespace verbscope
