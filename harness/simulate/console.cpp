#include "harness/simulate/console.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/explain.hpp"
#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

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

class Console final : public SimulationEvents {
 public:
  Console(const std::vector<SimulatedProgram>& programs, const std::string& folder) {
    std::error_code error;
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (error) fail("--output {}: cannot make this folder: {}", folder, error.message());
    std::map<int, std::shared_ptr<std::ofstream>> files;  // by node
    for (const SimulatedProgram& program : programs) {
      std::shared_ptr<std::ofstream>& file = files[program.node];
      if (!folder.empty() && !file)
        file = open(std::filesystem::path(folder) / fmt::format("node{}.out", program.node));
      const std::string prefix = fmt::format("node{}: ", program.node);
      outputs_.push_back({Output(prefix, stdout, file), Output(prefix, stderr, file)});
    }
  }

  void printed(std::size_t program, Stream stream, std::string_view chunk) override {
    outputs_[program][static_cast<std::size_t>(stream)].take(chunk);
  }

  void progressed(double real_s, double simulated_s) override {
    if (!on_terminal_) return;
    rewrite_line(stderr, fmt::format("SIMULATED {:.3f} ms in {:.1f} s ({:.0f} times slower)        ", simulated_s * 1e3,
                                     real_s, simulated_s > 0 ? real_s / simulated_s : 0.0));
  }

  void finish() {
    if (on_terminal_) rewrite_line(stderr, "");
    for (auto& streams : outputs_) {
      for (Output& output : streams) output.finish();
    }
  }

 private:
  static std::shared_ptr<std::ofstream> open(const std::filesystem::path& path) {
    auto file = std::make_shared<std::ofstream>(path, std::ios::trunc);
    if (!*file) fail("--output: cannot write {}", path.string());
    return file;
  }

  std::vector<std::array<Output, 2>> outputs_;  // of each program, by Stream
  bool on_terminal_ = terminal_width(stderr) > 0;
};

void summarise(const std::string& cluster, const Record& record) {
  const auto number = [&record](const char* key) { return record.result.at(key).get<double>(); };
  print_format(stderr, "SIMULATED on {}: {:.3f} ms in {:.1f} s; {:.3f} Mops from {:.3f} ms on for {:.3f} ms\n", cluster,
               number("simulated_s") * 1e3, number("real_s"), number("rate_mops"), number("window_begin_s") * 1e3,
               number("window_s") * 1e3);
  if (number("absences") > 0) {
    warn(fmt::format("{} times a thread waited for something that is not simulated: repeats may differ",
                     number("absences")));
  }
  if (record.status == RecordStatus::failed) print_error(record.reason);
  if (record.status == RecordStatus::ok) print_text(stderr, explain(record).limit_sentence() + "\n");
}

}  // namespace

int simulate_programs(const SimulateRequest& request, const SimulateOutput& output) {
  Interrupt interrupt;
  std::optional<ResultsWriter> writer;
  if (!output.json.empty()) writer.emplace(output.json, "--json");
  Console console(request.programs, output.folder);
  const Record record = run_programs(request, console, interrupt);
  console.finish();
  if (writer) writer->append(record);
  summarise(request.cluster, record);
  if (interrupt.pending()) throw InterruptedError("interrupted");
  return record.status == RecordStatus::ok ? 0 : 1;
}

}  // namespace verbscope
