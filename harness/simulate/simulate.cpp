#include "harness/simulate/simulate.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <new>
#include <thread>

#include "common/error.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "harness/process/child.hpp"
#include "harness/simulate/recorder.hpp"
#include "simulate/server/simulation.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLibrary = "libverbscope_simulate.so";
// Once a program has failed, for the others to notice: virtual time, and real time if that stands still or is slow.
constexpr Picos kToNotice{1'000'000'000'000};
constexpr std::chrono::milliseconds kStandsStill{1000}, kToNoticeSlowly{5000};
constexpr std::chrono::milliseconds kToBeReaped{1000};
constexpr std::chrono::milliseconds kPatience{500};  // from SIGTERM to SIGKILL
constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::microseconds kToBeRead{20};

// The memory shared with the programs, which find it by its path while this process lives.
class Shared {
 public:
  explicit Shared(std::uint32_t nodes)
      : file_(check("memfd_create", memfd_create("verbscope-simulation", MFD_CLOEXEC))) {
    check("ftruncate", ftruncate(file_.get(), sizeof(simulate::SharedMemory)));
    void* const mapped =
        mmap(nullptr, sizeof(simulate::SharedMemory), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (mapped == MAP_FAILED) throw_errno("mmap", errno);
    memory_ = static_cast<simulate::SharedMemory*>(mapped);
    memory_->version = simulate::kVersion;
    memory_->nodes = nodes;
    memory_->tsc_mhz = processor_mhz();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(memory_, sizeof *memory_); }

  simulate::SharedMemory& memory() { return *memory_; }
  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_.get()); }

 private:
  // As programs read it, which take it for the rate of the time stamp counter.
  static double processor_mhz() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("cpu MHz")) return std::strtod(line.c_str() + line.find(':') + 1, nullptr);
    }
    return 2000;
  }

  Fd file_;
  simulate::SharedMemory* memory_;
};

// Programs begin at the same addresses each time, so that what they print does not change. Where it is not allowed,
// they print other addresses.
class SameAddresses {
 public:
  SameAddresses() : before_(personality(0xffffffff)) {
    if (before_ >= 0) personality(static_cast<unsigned long>(before_) | ADDR_NO_RANDOMIZE);
  }
  SameAddresses(const SameAddresses&) = delete;
  SameAddresses& operator=(const SameAddresses&) = delete;
  ~SameAddresses() {
    if (before_ >= 0) personality(static_cast<unsigned long>(before_));
  }

 private:
  int before_;
};

std::string preloaded() {
  const std::filesystem::path library = program_folder() / kLibrary;
  if (!std::filesystem::exists(library)) fail("{} does not exist: build all programs first", library.string());
  const char* const before = std::getenv("LD_PRELOAD");
  // Behind the others: the tracer's counts the calls of this one's device.
  return "LD_PRELOAD=" + (before == nullptr || *before == '\0' ? "" : std::string(before) + ":") + library.string();
}

class Run {
 public:
  Run(const SimulateRequest& request, SimulationEvents& events, StopSource& interrupt)
      : request_(request),
        events_(events),
        interrupt_(interrupt),
        profile_(load_profile(request.cluster)),
        nodes_(nodes_of(request)),
        shared_(static_cast<std::uint32_t>(nodes_)),
        simulation_(
            shared_.memory(), profile_,
            {.nodes = nodes_,
             .seed = request.seed,
             .start_gap = request.start_gap,
             .silence_ns = request.silence.count()},
            stop_.get_token(), [this] { recorder_.look(); }, [this](int node) { await_printed(node); }),
        recorder_(simulation_.cluster()) {}

  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Record go() {
    start();
    std::vector<pid_t> ids;
    for (const auto& child : children_) ids.push_back(child->id());
    std::jthread simulating([this, ids] {
      try {
        simulation_.run(ids);
      } catch (...) {
        error_ = std::current_exception();
      }
      end_.set_value();
    });
    watch();
    stop_.request_stop();
    simulating.join();
    return recorded();
  }

 private:
  static int nodes_of(const SimulateRequest& request) {
    int most = 0;
    for (const SimulatedProgram& program : request.programs) most = std::max(most, program.node + 1);
    if (request.nodes != 0 && request.nodes < most)
      fail_usage("--nodes {}: a program is on node {}", request.nodes, most - 1);
    return std::max(request.nodes, most);
  }

  void start() {
    const std::string preload = preloaded();
    const SameAddresses same;
    for (std::size_t i = 0; i < request_.programs.size(); ++i) {
      const SimulatedProgram& program = request_.programs[i];
      const std::vector<std::string> environment{preload,
                                                 fmt::format("{}={}", simulate::kMemoryVariable, shared_.path()),
                                                 fmt::format("{}={}", simulate::kNodeVariable, program.node)};
      children_.push_back(std::make_unique<Child>(
          command_of(program),
          [this, i](std::string_view chunk) { events_.printed(i, SimulationEvents::Stream::out, chunk); }, environment,
          Fd(), [this, i](std::string_view chunk) { events_.printed(i, SimulationEvents::Stream::error, chunk); }));
      for (Fd& pipe : children_.back()->copies_of_pipes()) pipes_.emplace_back(program.node, std::move(pipe));
    }
  }

  // What programs print appears in the order of virtual time: waits until the output of this node has been read.
  void await_printed(int node) const {
    for (const auto& [of, pipe] : pipes_) {
      int unread = 0;
      while (of == node && !stop_.stop_requested() && ioctl(pipe.get(), FIONREAD, &unread) == 0 && unread > 0)
        std::this_thread::sleep_for(kToBeRead);
    }
  }

  // A folder and variables are set by env(1).
  static std::vector<std::string> command_of(const SimulatedProgram& program) {
    std::vector<std::string> command;
    if (!program.folder.empty() || !program.environment.empty()) {
      command.push_back(find_program("env"));
      if (!program.folder.empty()) command.insert(command.end(), {"-C", program.folder});
      command.insert(command.end(), program.environment.begin(), program.environment.end());
    }
    command.insert(command.end(), program.arguments.begin(), program.arguments.end());
    if (command.front() == program.arguments.front() && command.front().find('/') == std::string::npos)
      command.front() = find_program(command.front());
    return command;
  }

  // True if the simulation has ended.
  bool done() const { return ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  // Until the programs have ended, one has failed, or the run is stopped.
  void watch() {
    std::vector<Child*> children;
    for (const auto& child : children_) children.push_back(child.get());
    const auto begin = Clock::now();
    const auto failed = [this] {
      for (std::size_t i = 0; i < children_.size() && reason_.empty(); ++i) {
        if (children_[i]->running() || children_[i]->succeeded()) continue;
        reason_ = request_.programs[i].title() + ": " + children_[i]->end_text();
        tail_ = children_[i]->tail();
      }
      return !reason_.empty();
    };
    const auto ended = [&] {
      return std::ranges::none_of(children, [](const Child* child) { return child->running(); });
    };
    const auto late = [&] { return request_.limit && Clock::now() - begin > *request_.limit; };
    while (!failed() && !ended() && !interrupt_.pending() && !done()) {
      if (late()) {
        reason_ = fmt::format("not finished after {:g} s", std::chrono::duration<double>(*request_.limit).count());
        break;
      }
      wait_children(children, Clock::now() + kBetweenLooks, &interrupt_, [&] { return failed() || ended(); });
      events_.progressed(std::chrono::duration<double>(Clock::now() - begin).count(),
                         to_seconds(Picos(simulation_.now_ps())));
    }
    // The simulation ends by itself, unless programs that these have started go on.
    if (ended()) ended_.wait_for(kToBeReaped);
    if (done() && error_ && reason_.empty()) reason_ = "the simulation failed";
    if (done() && !error_) wait_children(children, Clock::now() + kToBeReaped, nullptr, ended);
    if (failed() && !late() && !done()) let_notice(children, [&] { return ended() || late(); });
    real_s_ = std::chrono::duration<double>(Clock::now() - begin).count();
    stop_.request_stop();
    for (Child* child : children) child->signal(SIGTERM);
    for (Child* child : children) child->end(kPatience);
  }

  // Until the others have ended alone, or had the time to, or `over` returns true.
  void let_notice(const std::vector<Child*>& children, const std::function<bool()>& over) {
    const auto begin = Clock::now();
    const Picos failed_at(simulation_.now_ps());
    for (Picos seen = failed_at; !over() && !interrupt_.pending();) {
      wait_children(children, Clock::now() + kBetweenLooks, &interrupt_, over);
      const Picos now(simulation_.now_ps());
      const auto patience = now == seen ? kStandsStill : kToNoticeSlowly;
      if (now - failed_at >= kToNotice || Clock::now() - begin >= patience) return;
      seen = now;
    }
  }

  Record recorded() {
    Record record;
    record.benchmark = "simulate";
    record.reason = reason_;
    record.status = reason_.empty() ? RecordStatus::ok : RecordStatus::failed;
    if (error_ && !interrupt_.pending()) {
      try {
        std::rethrow_exception(error_);
      } catch (const InterruptedError&) {
      } catch (const std::exception& error) {
        record.status = RecordStatus::failed;
        record.reason = error.what();
      }
    }
    record.config = {{"fabric", "sim:" + request_.cluster}, {"nodes", nodes_}, {"seed", request_.seed}};
    Json programs = Json::array();
    for (const SimulatedProgram& program : request_.programs) {
      programs.push_back(Json{{"node", program.node}, {"arguments", program.arguments}});
    }
    record.config["programs"] = std::move(programs);
    record.result = {{"real_s", real_s_},
                     {"silences", simulation_.silences().silent},
                     {"absences", simulation_.silences().blocked},
                     {"threads_without_core", simulation_.silences().without_core}};
    if (!tail_.empty()) record.result["output_tail"] = tail_;
    recorder_.complete(record, profile_);
    record.environment = make_environment("sim:" + request_.cluster, request_.command_line);
    return record;
  }

  const SimulateRequest& request_;
  SimulationEvents& events_;
  StopSource& interrupt_;
  Profile profile_;
  int nodes_;
  Shared shared_;
  std::stop_source stop_;
  simulate::Simulation simulation_;
  Recorder recorder_;
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<std::pair<int, Fd>> pipes_;  // with the output of the programs, by their nodes
  std::promise<void> end_;                 // of the simulation
  std::future<void> ended_ = end_.get_future();
  std::exception_ptr error_;
  std::string reason_;
  std::vector<std::string> tail_;  // of the program that failed
  double real_s_ = 0;
};

}  // namespace

Record run_programs(const SimulateRequest& request, SimulationEvents& events, StopSource& stop) {
  return Run(request, events, stop).go();
}

}  // namespace verbscope
