#include "harness/trace/trace.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "common/error.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"
#include "drivers_patch/trace_file.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/trace/trace_record.hpp"
#include "harness/trace/trace_text.hpp"
#include "harness/trace/traced_program.hpp"

namespace verbscope {
namespace {

using driver::Summary;
using Clock = std::chrono::steady_clock;

// Interval at which counts are read: the resolution of the active time.
constexpr std::chrono::milliseconds kLook{100};

// The program writes counts to files in this folder and must not wait for a disk: prefers memory.
std::filesystem::path parent_of_counts() {
  constexpr const char* kMemory = "/dev/shm";
  return access(kMemory, W_OK | X_OK) == 0 ? kMemory : temporary_folder();
}

struct Activity {
  std::uint64_t counted = 0;
  std::optional<Clock::time_point> first;
  Clock::time_point last;

  double seconds() const { return first ? std::chrono::duration<double>(last - *first).count() : 0; }
};

class Tracer {
 public:
  explicit Tracer(const TraceRequest& request) : request_(request) {
    if (!request.cluster.empty()) profile_of(request.cluster);
    if (!request.json.empty()) writer_.emplace(request.json, "--json");
  }

  // Returns the program's status as waitpid() returns it.
  int run() {
    TracedProgram program(request_.arguments, folder_.path(), request_.nic, request_.verify);
    auto next = Clock::now() + request_.every.value_or(std::chrono::milliseconds{0});
    for (;;) {
      const TraceTurn turn = program.wait(kLook);
      look();
      if (turn == TraceTurn::ended) break;
      if (turn == TraceTurn::asked) tell("so_far");
      if (!request_.every || Clock::now() < next) continue;
      tell("so_far");
      next += *request_.every;
    }
    tell("whole");
    if (processes_.empty())
      warn(
          fmt::format("{} opened no RDMA device, or could not be traced (it changes its user, or is linked statically)",
                      request_.arguments.front()));
    return program.status();
  }

 private:
  // Reads the counts and notes which processes have counted since the last call.
  void look() {
    const auto now = Clock::now();
    processes_ = driver::read_trace_folder(folder_.path());
    for (const Summary& process : processes_) {
      Activity& activity = activities_[{process.process, process.began_ns}];
      const driver::Sums& whole = process.whole;
      const std::uint64_t counted = whole.requests() + whole.recvs.recvs + whole.polled;
      if (counted == activity.counted) continue;
      activity.counted = counted;
      if (!activity.first) activity.first = std::max(before_, began_);
      activity.last = now;
    }
    before_ = now;
  }

  // Child processes without verbs inherit the program's files but count nothing.
  static bool did_something(const Summary& process) {
    const auto made = [](const driver::ContextSummary& each) { return each.qps_made + each.cqs_made > 0; };
    return process.whole.requests() + process.whole.recvs.recvs + process.whole.polled > 0 ||
           std::ranges::any_of(process.contexts, made);
  }

  void tell(const std::string& part) {
    for (const Summary& process : processes_) {
      if (!did_something(process)) continue;
      const double active_s = activities_[{process.process, process.began_ns}].seconds();
      const Profile* const profile = profile_for(process);
      print_text(stderr, trace_text(process, tick_rate_since(process), active_s, profile));
      const TraceSetting setting{request_.arguments, request_.command_line, request_.nic, profile};
      if (writer_) writer_->append(trace_record(process, setting, part, active_s));
    }
  }

  const Profile& profile_of(const std::string& cluster) {
    const auto found = profiles_.find(cluster);
    return found != profiles_.end() ? found->second : profiles_.emplace(cluster, load_profile(cluster)).first->second;
  }

  // Null if no cluster was named and the adapter's family is unknown.
  const Profile* profile_for(const Summary& process) {
    if (!request_.cluster.empty()) return &profile_of(request_.cluster);
    return process.wire.known ? &profile_of(usual_cluster(process.wire.family)) : nullptr;
  }

  const TraceRequest& request_;
  std::map<std::string, Profile> profiles_;
  std::optional<ResultsWriter> writer_;
  TempFolder folder_{parent_of_counts()};
  const Clock::time_point began_ = Clock::now();
  Clock::time_point before_ = began_;
  std::vector<Summary> processes_;
  std::map<std::pair<int, std::uint64_t>, Activity> activities_;
};

}  // namespace

const char* usual_cluster(NicFamily family) {
  return family == NicFamily::mlx4 ? "cx3" : "cib";
}

int trace(const TraceRequest& request) {
  // The tracer removes its folder before this process ends by the program's signal.
  const int status = Tracer(request).run();
  return end_like(status);
}

}  // namespace verbscope
