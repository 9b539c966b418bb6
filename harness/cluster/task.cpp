#include "harness/cluster/task.hpp"

#include <unistd.h>

#include <csignal>

#include "common/files.hpp"
#include "harness/cluster/hosts.hpp"

namespace verbscope {

Task::Task(const TaskSpec& spec, int numa_node) : record_file_(spec.record_file), last_heard_(Clock::now()) {
  std::vector<std::string> command = spec.command;
  if (numa_node >= 0) command.push_back("--cores=" + cores_of_node(numa_node));
  command.push_back("--out_json_file=" + record_file_);
  child_ = std::make_unique<Child>(
      command, [this](std::string_view chunk) { receive(chunk); }, spec.environment);
}

Task::Task(Launcher& launcher, const Host& host, const std::string& holder, const TaskSpec& spec)
    : held_(true), record_file_(spec.record_file) {
  const std::string request = to_line(
      {.command = spec.command, .environment = spec.environment, .limit = spec.limit, .numa_node = host.numa_node});
  auto [read_end, write_end] = make_pipe();
  write_whole(write_end, request);
  input_ = std::move(write_end);
  const std::vector<std::string> command = launcher.command(host, {holder, "hold"});
  last_heard_ = Clock::now();
  child_ = std::make_unique<Child>(
      command, [this](std::string_view chunk) { receive(chunk); }, std::vector<std::string>{}, std::move(read_end));
}

Task::Task(ServedProgram& program, const TaskSpec& spec) : record_file_(spec.record_file), served_(&program) {
  std::vector<std::string> arguments(spec.command.begin() + 1, spec.command.end());
  arguments.push_back("--out_json_file=" + record_file_);
  program.begin(arguments);
}

void Task::receive(std::string_view chunk) {
  last_heard_ = Clock::now();
  if (!held_) {
    output_.append(chunk.substr(0, kHeldOutput - std::min(kHeldOutput, output_.size())));
    return;
  }
  hold_reader_.feed(chunk);
  if (!hold_reader_.record() || record_written_) return;
  record_written_ = true;
  replace_file(record_file_, *hold_reader_.record());
}

bool Task::succeeded() const {
  if (served_ != nullptr) return served_->exit_code() == 0;
  return held_ ? !running() && hold_reader_.end() && hold_reader_.end()->good : child_->succeeded();
}

std::string Task::end_text() const {
  if (served_ != nullptr && served_->exit_code()) return fmt::format("exit status {}", *served_->exit_code());
  if (served_ != nullptr) return served_->child().end_text();
  if (!held_ || running()) return child_->end_text();
  return hold_reader_.end() ? hold_reader_.end()->text : "connection lost (" + child_->end_text() + ")";
}

std::vector<std::string> Task::tail() const {
  if (served_ != nullptr) return served_->tail();
  if (!held_) return child_->tail();
  if (hold_reader_.end()) return hold_reader_.end()->tail;
  std::vector<std::string> lines = child_->tail();  // the launcher's output without our answers
  std::erase_if(lines, [](const std::string& line) { return line.starts_with(kHoldMark); });
  return lines;
}

const std::string& Task::output() const {
  return held_ ? hold_reader_.output() : output_;
}

Task::Clock::duration Task::silence() const {
  return held_ && running() ? Clock::now() - last_heard_ : Clock::duration::zero();
}

void Task::request_end() {
  if (held_) {
    input_ = Fd();
  } else {
    child().signal(SIGTERM);
  }
}

void Task::end(std::chrono::milliseconds patience) {
  if (!running()) return;
  request_end();
  wait_for_end(child(), Clock::now() + patience, nullptr);
  child().end(std::chrono::milliseconds(held_ ? 500 : 0));
}

}  // namespace verbscope
