#include "harness/process/served_program.hpp"

#include <cstdlib>
#include <utility>

#include "common/error.hpp"
#include "common/served.hpp"

namespace verbscope {

ServedProgram::ServedProgram(std::string path) : path_(std::move(path)) {
  auto [read_end, write_end] = make_pipe();
  commands_ = std::move(write_end);
  child_ = std::make_unique<Child>(
      std::vector<std::string>{path_, std::string(kServeOption)}, [this](std::string_view chunk) { receive(chunk); },
      std::vector<std::string>{}, std::move(read_end));
}

void ServedProgram::begin(const std::vector<std::string>& arguments) {
  exit_code_.reset();
  child_->forget_tail();
  busy_ = true;
  try {
    write_whole(commands_, served_line(arguments));
  } catch (const Error&) {
    child_->end(std::chrono::milliseconds(0));  // it may be about to end
    fail("{} {}: {}", path_, kServeOption, child_->end_text());
  }
}

void ServedProgram::receive(std::string_view chunk) {
  for (const char c : chunk) {
    if (c != '\n') {
      line_.push_back(c);
      continue;
    }
    const std::string line = std::exchange(line_, {});
    if (!line.starts_with(kServedEnd)) continue;
    exit_code_ = std::atoi(line.c_str() + kServedEnd.size());
    busy_ = false;
  }
}

std::vector<std::string> ServedProgram::tail() const {
  std::vector<std::string> lines = child_->tail();
  std::erase_if(lines, [](const std::string& line) { return line.starts_with(kServedEnd); });
  return lines;
}

void ServedPrograms::prepare(const std::string& path, std::size_t count) {
  const std::lock_guard lock(mutex_);
  std::erase_if(idle_, [](const auto& each) { return !each.second->running(); });
  while (idle_.count(path) < count) idle_.emplace(path, std::make_unique<ServedProgram>(path));
}

std::unique_ptr<ServedProgram> ServedPrograms::take(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = idle_.find(path);
  return found == idle_.end() ? nullptr : std::move(idle_.extract(found).mapped());
}

void ServedPrograms::give_back(std::unique_ptr<ServedProgram> program) {
  if (!program->running() || program->busy()) return;
  const std::lock_guard lock(mutex_);
  idle_.emplace(program->path(), std::move(program));
}

}  // namespace verbscope
