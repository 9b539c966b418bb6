#include "harness/simulate/simulate.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <thread>

#include "analysis/explain.hpp"
#include "common/error.hpp"
#include "common/files.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"
#include "harness/process/child.hpp"
#include "harness/simulate/recorder.hpp"
#include "simulate/server/simulation.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLibrary = "libverbscope_simulate.so";
constexpr std::chrono::milliseconds kPatience{1000};  // from SIGTERM to SIGKILL
constexpr std::chrono::milliseconds kBetweenLooks{200};

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

// The output of a program: to a file, or line by line with the node's name in front. It is passed on as it is, as if
// the program had been started from a shell.
class Output {
 public:
  Output(std::string prefix, std::FILE* out, std::shared_ptr<std::ofstream> file)
      : prefix_(std::move(prefix)), out_(out), file_(std::move(file)) {}
  void take(std::string_view chunk) {
    if (file_) {
      file_->write(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      return;
    }
    partial_ += chunk;
    std::size_t begin = 0;
    for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', begin)) {
      print_own_text(out_, prefix_ + partial_.substr(begin, end + 1 - begin));
      begin = end + 1;
    }
    partial_.erase(0, begin);
  }
  void finish() {
    if (!partial_.empty()) print_own_text(out_, prefix_ + partial_ + "\n");
    partial_.clear();
    if (file_) file_->flush();
  }

 private:
  std::string prefix_;
  std::FILE* out_;
  std::shared_ptr<std::ofstream> file_;
  std::string partial_;
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
  explicit Run(const SimulateRequest& request)
      : request_(request),
        profile_(load_profile(request.cluster)),
        nodes_(nodes_of(request)),
        shared_(static_cast<std::uint32_t>(nodes_)),
        simulation_(shared_.memory(), profile_,
                    {.nodes = nodes_,
                     .seed = request.seed,
                     .start_gap = request.start_gap,
                     .silence_ns = request.silence.count()},
                    stop_.get_token(), [this] { recorder_.look(); }),
        recorder_(simulation_.cluster()) {}

  int go() {
    std::optional<ResultsWriter> writer;
    if (!request_.json.empty()) writer.emplace(request_.json, "--json");
    start();
    std::vector<pid_t> ids;
    for (const auto& child : children_) ids.push_back(child->id());
    std::jthread simulating([this, ids] {
      try {
        simulation_.run(ids);
      } catch (...) {
        error_ = std::current_exception();
      }
      done_ = true;
    });
    watch();
    stop_.request_stop();
    simulating.join();
    for (Output& output : outputs_) output.finish();
    const Record record = recorded();
    if (writer) writer->append(record);
    summarise(record);
    if (interrupt_.pending()) throw InterruptedError("interrupted");
    return record.status == RecordStatus::ok ? 0 : 1;
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
    if (!request_.output_folder.empty()) std::filesystem::create_directories(request_.output_folder);
    const std::string preload = preloaded();
    const SameAddresses same;
    std::vector<std::shared_ptr<std::ofstream>> files(static_cast<std::size_t>(nodes_));
    outputs_.reserve(2 * request_.programs.size());
    for (const SimulatedProgram& program : request_.programs) {
      std::shared_ptr<std::ofstream>& file = files[static_cast<std::size_t>(program.node)];
      if (!request_.output_folder.empty() && !file) {
        const auto path = std::filesystem::path(request_.output_folder) / fmt::format("node{}.out", program.node);
        file = std::make_shared<std::ofstream>(path, std::ios::trunc);
        if (!*file) fail("--output: cannot write {}", path.string());
      }
      const std::string prefix = fmt::format("node{}: ", program.node);
      Output& out = outputs_.emplace_back(prefix, stdout, file);
      Output& err = outputs_.emplace_back(prefix, stderr, file);
      const std::vector<std::string> environment{preload,
                                                 fmt::format("{}={}", simulate::kMemoryVariable, shared_.path()),
                                                 fmt::format("{}={}", simulate::kNodeVariable, program.node)};
      children_.push_back(std::make_unique<Child>(
          command_of(program), [&out](std::string_view chunk) { out.take(chunk); }, environment, Fd(),
          [&err](std::string_view chunk) { err.take(chunk); }));
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

  // Until the programs have ended, one has failed, or the run is stopped.
  void watch() {
    std::vector<Child*> children;
    for (const auto& child : children_) children.push_back(child.get());
    const auto begin = Clock::now();
    const auto failed = [this] {
      for (std::size_t i = 0; i < children_.size() && reason_.empty(); ++i) {
        if (!children_[i]->running() && !children_[i]->succeeded())
          reason_ = request_.programs[i].title() + ": " + children_[i]->end_text();
      }
      return !reason_.empty();
    };
    const auto ended = [&] {
      return std::ranges::none_of(children, [](const Child* child) { return child->running(); });
    };
    while (!failed() && !ended() && !interrupt_.pending() && !done_) {
      if (request_.limit && Clock::now() - begin > *request_.limit) {
        reason_ = fmt::format("not finished after {:g} s", std::chrono::duration<double>(*request_.limit).count());
        break;
      }
      wait_children(children, Clock::now() + kBetweenLooks, &interrupt_, [&] { return failed() || ended(); });
      show_progress(begin);
    }
    if (done_ && error_ && reason_.empty()) reason_ = "the simulation failed";
    if (done_ && !error_) wait_children(children, Clock::now() + kPatience, nullptr, ended);
    failed();
    real_s_ = std::chrono::duration<double>(Clock::now() - begin).count();
    stop_.request_stop();
    for (Child* child : children) child->signal(SIGTERM);
    for (Child* child : children) child->end(kPatience);
    if (on_terminal_) rewrite_line(stderr, "");
  }

  void show_progress(Clock::time_point begin) {
    if (!on_terminal_) return;
    const double real_s = std::chrono::duration<double>(Clock::now() - begin).count();
    const double simulated_s = to_seconds(Picos(simulation_.now_ps()));
    rewrite_line(stderr, fmt::format("SIMULATED {:.3f} ms in {:.1f} s ({:.0f} times slower)        ", simulated_s * 1e3,
                                     real_s, simulated_s > 0 ? real_s / simulated_s : 0.0));
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
    recorder_.complete(record, profile_);
    record.environment = make_environment("sim:" + request_.cluster, request_.command_line);
    return record;
  }

  void summarise(const Record& record) const {
    const double simulated_s = record.result.at("simulated_s");
    print_format(stderr, "SIMULATED on {}: {:.3f} ms in {:.1f} s; {:.3f} Mops from {:.3f} ms on for {:.3f} ms\n",
                 request_.cluster, simulated_s * 1e3, real_s_, record.result.at("rate_mops").get<double>(),
                 record.result.at("window_begin_s").get<double>() * 1e3,
                 record.result.at("window_s").get<double>() * 1e3);
    if (simulation_.silences().blocked > 0) {
      warn(fmt::format("{} times a thread waited for something that is not simulated: repeats may differ",
                       simulation_.silences().blocked));
    }
    if (record.status == RecordStatus::failed) print_error(record.reason);
    if (record.status == RecordStatus::ok) print_text(stderr, explain(record).limit_sentence() + "\n");
  }

  const SimulateRequest& request_;
  Profile profile_;
  int nodes_;
  Interrupt interrupt_;
  Shared shared_;
  std::stop_source stop_;
  simulate::Simulation simulation_;
  Recorder recorder_;
  std::vector<Output> outputs_;
  std::vector<std::unique_ptr<Child>> children_;
  std::atomic<bool> done_ = false;
  std::exception_ptr error_;
  std::string reason_;
  double real_s_ = 0;
  bool on_terminal_ = terminal_width(stderr) > 0;
};

}  // namespace

int simulate_programs(const SimulateRequest& request) {
  return Run(request).go();
}

}  // namespace verbscope
