// The part of PAPI's library that is used, as an interface: uncore counters can be tested without such a CPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace verbscope {

enum class PapiAdd {
  added,
  absent,   // this machine does not have the event
  no_room,  // it has, but too few counters for it beside those of the set
};

// Event sets. Every failure is an Error with PAPI's own text. Belongs to one thread at a time.
class PapiLibrary {
 public:
  virtual ~PapiLibrary() = default;
  // A set of events of a component: "perf_event" (cores), attached to a thread of this process, or "perf_event_uncore".
  // `multiplexed`: events may take turns; what is read is scaled up.
  virtual int open(const std::string& component, std::optional<int> thread, bool multiplexed) = 0;
  // `reason` is PAPI's text when it is not added.
  virtual PapiAdd add(int set, const std::string& event, std::string& reason) = 0;
  virtual void start(int set) = 0;
  // The counts, in the order in which events were added.
  virtual std::vector<long long> read(int set) = 0;
  virtual void close(int set) noexcept = 0;
  // Frees what the library keeps of the calling thread, which may end afterwards. Its sets are closed.
  virtual void forget_thread() noexcept = 0;
};

// The real library, one a process; initialised at its first use.
PapiLibrary& papi_library();

}  // namespace verbscope
