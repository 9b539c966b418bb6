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

// How often it looks whether counts have risen: the traffic's time is known no better.
constexpr std::chrono::milliseconds kLook{100};

// Counts are written into files of a folder as the program goes, and no disk is to make it wait: in memory, where there
// is such a folder.
std::filesystem::path parent_of_counts() {
  constexpr const char* kMemory = "/dev/shm";
  return access(kMemory, W_OK | X_OK) == 0 ? kMemory : std::filesystem::temp_directory_path();
}

// When the counts of a process rose.
struct Activity {
  std::uint64_t counted = 0;
  std::optional<Clock::time_point> first;
  Clock::time_point last;

  double seconds() const { return first ? std::chrono::duration<double>(last - *first).count() : 0; }
};

class Tracer {
 public:
  explicit Tracer(const TraceRequest& request)
      : request_(request), setting_{request.arguments, request.command_line, request.nic} {
    if (!request.json.empty()) writer_.emplace(request.json, "--json");
  }

  // Yields the program's status, as of waitpid().
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
  // Reads the counts, and notes whose have risen: since the look before.
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

  // The children of a program that use no verbs have inherited its files, and counted nothing.
  static bool did_something(const Summary& process) {
    const auto made = [](const driver::ContextSummary& each) { return each.qps_made + each.cqs_made > 0; };
    return process.whole.requests() + process.whole.recvs.recvs + process.whole.polled > 0 ||
           std::ranges::any_of(process.contexts, made);
  }

  void tell(const std::string& part) {
    for (const Summary& process : processes_) {
      if (!did_something(process)) continue;
      const double active_s = activities_[{process.process, process.began_ns}].seconds();
      print_text(stderr, trace_text(process, tick_rate_since(process), active_s));
      if (writer_) writer_->append(trace_record(process, setting_, part, active_s));
    }
  }

  const TraceRequest& request_;
  TraceSetting setting_;
  std::optional<ResultsWriter> writer_;
  TempFolder folder_{parent_of_counts()};
  const Clock::time_point began_ = Clock::now();
  Clock::time_point before_ = began_;
  std::vector<Summary> processes_;
  std::map<std::pair<int, std::uint64_t>, Activity> activities_;
};

}  // namespace

int trace(const TraceRequest& request) {
  // Its folder is gone before this process ends by the program's signal.
  const int status = Tracer(request).run();
  return end_like(status);
}

}  // namespace verbscope
