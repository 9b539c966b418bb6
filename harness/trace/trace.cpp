#include "harness/trace/trace.hpp"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "drivers_patch/summary.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/trace/trace_record.hpp"
#include "harness/trace/trace_text.hpp"

namespace verbscope {
namespace {

// Why TracedProgram::wait returned.
enum class TraceEvent {
  ended,
  report_requested,  // SIGUSR1 arrived
  timeout
};

class TracedProgram {
 public:
  // Starts arguments[0], a path or a name in PATH. `folder` receives the count files of its processes; `nic`: a family
  // of adapters, or "auto"; `verify`: also compare WQEs. Throws Error if the program cannot be started or the library
  // is not in the folder of this program. While this object lives, SIGINT, SIGTERM and SIGHUP are passed on to the
  // program.
  TracedProgram(const std::vector<std::string>& arguments, const std::filesystem::path& folder, const std::string& nic,
                bool verify);
  TracedProgram(const TracedProgram&) = delete;
  TracedProgram& operator=(const TracedProgram&) = delete;
  ~TracedProgram();  // kills it if it still runs

  // Waits for one of the events above, at most for `limit`.
  TraceEvent wait(std::chrono::milliseconds limit);
  // Valid after TraceEvent::ended: the status as waitpid() returns it.
  int status() const { return status_; }

 private:
  void pass_on(int number, bool from_terminal) const;

  pid_t pid_ = -1;
  int status_ = 0;
  bool running_ = false;
  sigset_t before_{};
};

// This process's environment, with the library first in LD_PRELOAD.
std::vector<std::string> environment_of(const std::filesystem::path& folder, const std::string& nic, bool verify) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  const std::filesystem::path library = program_folder() / driver::kLibrary;
  if (!std::filesystem::exists(library)) fail("{} does not exist: build all programs first", library.string());
  std::string preload = std::string(kPreload) + library.string();
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    if (variable.starts_with(kPreload)) {
      preload += ":" + std::string(variable.substr(kPreload.size()));
    } else {
      variables.emplace_back(variable);
    }
  }
  variables.push_back(preload);
  variables.push_back(fmt::format("{}={}", driver::kFolderVariable, folder.string()));
  variables.push_back(fmt::format("{}={}", driver::kNicVariable, nic));
  if (verify) variables.push_back(fmt::format("{}=1", driver::kVerifyVariable));
  return variables;
}

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGUSR1, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, number);
  return set;
}

TracedProgram::TracedProgram(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                             const std::string& nic, bool verify) {
  const std::vector<std::string> variables = environment_of(folder, nic, verify);
  const sigset_t signals = awaited_signals();
  check_errno("pthread_sigmask", pthread_sigmask(SIG_BLOCK, &signals, &before_));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &before_);
  // verbscope ignores these two; the program gets the default.
  sigset_t by_default;
  sigemptyset(&by_default);
  sigaddset(&by_default, SIGPIPE);
  sigaddset(&by_default, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &by_default);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&pid_, arguments[0].c_str(), nullptr, &attributes, c_strings(arguments).data(),
                                 c_strings(variables).data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    fail("cannot start {}: {}", arguments[0], errno_text(error));
  }
  running_ = true;
}

TracedProgram::~TracedProgram() {
  if (running_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// The terminal already sends its signals to the program too.
void TracedProgram::pass_on(int number, bool from_terminal) const {
  if (!from_terminal) kill(pid_, number);
}

TraceEvent TracedProgram::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const sigset_t signals = awaited_signals();
  while (waitpid(pid_, &status_, WNOHANG) == 0) {
    const auto left = std::max(end - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration{0});
    const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec timeout{.tv_sec = nanos / 1'000'000'000, .tv_nsec = nanos % 1'000'000'000};
    siginfo_t info{};
    const int number = sigtimedwait(&signals, &info, &timeout);
    if (number < 0 && errno == EAGAIN) return TraceEvent::timeout;
    if (number == SIGUSR1) return TraceEvent::report_requested;
    if (number > 0 && number != SIGCHLD) pass_on(number, info.si_code == SI_KERNEL);
  }
  running_ = false;
  return TraceEvent::ended;
}

// Ends this process like the program: returns its exit status, or raises the signal that ended it.
int end_like(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(number);
  return 128 + number;
}

using driver::Summary;
using Clock = std::chrono::steady_clock;

// Interval at which counts are read: the resolution of the active time.
constexpr std::chrono::milliseconds kReadInterval{100};

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

// The cluster in configs/clusters/ whose costs represent a family of adapters.
const char* default_cluster(NicFamily family) {
  return family == NicFamily::mlx4 ? "cx3" : "cib";
}

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
      const TraceEvent event = program.wait(kReadInterval);
      read_counts();
      if (event == TraceEvent::ended) break;
      if (event == TraceEvent::report_requested) report("so_far");
      if (!request_.every || Clock::now() < next) continue;
      report("so_far");
      next += *request_.every;
    }
    report("whole");
    if (processes_.empty())
      warn(
          fmt::format("{} opened no RDMA device, or could not be traced (it changes its user, or is linked statically)",
                      request_.arguments.front()));
    return program.status();
  }

 private:
  // Reads the counts and notes which processes have counted since the last call.
  void read_counts() {
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
  static bool used_verbs(const Summary& process) {
    const auto made = [](const driver::ContextSummary& each) { return each.qps_made + each.cqs_made > 0; };
    return process.whole.requests() + process.whole.recvs.recvs + process.whole.polled > 0 ||
           std::ranges::any_of(process.contexts, made);
  }

  void report(const std::string& part) {
    for (const Summary& process : processes_) {
      if (!used_verbs(process)) continue;
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
    return process.wire.known ? &profile_of(default_cluster(process.wire.family)) : nullptr;
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

int trace(const TraceRequest& request) {
  // The tracer removes its folder before this process ends by the program's signal.
  const int status = Tracer(request).run();
  return end_like(status);
}

}  // namespace verbscope
