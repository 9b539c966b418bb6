// Interface to the parts of PAPI's library that are used. Tests replace it, so they need no CPU with uncore counters.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace verbscope {

enum class PapiAdd {
  added,
  absent,   // the machine does not have this event
  no_room,  // the machine has it, but not enough counters besides those of the set
};

// Event sets. Every failure throws Error with PAPI's text. Used by one thread at a time.
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

// The real library; initialised at its first use.
PapiLibrary& papi_library();

}  // namespace verbscope
