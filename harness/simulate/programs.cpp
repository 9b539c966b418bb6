#include "harness/simulate/programs.hpp"

#include <cctype>
#include <charconv>
#include <string_view>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kNext = "::";
constexpr int kMaxNodes = 256;  // as many addresses as 127.0.0.x has

// "@1" or "@1:/work".
void place(SimulatedProgram& program, std::string_view word) {
  const std::size_t colon = word.find(':');
  const std::string_view number = word.substr(1, colon == word.npos ? word.npos : colon - 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), program.node);
  if (error != std::errc() || end != number.data() + number.size() || program.node < 0 || program.node >= kMaxNodes) {
    fail_usage("{}: expected @NODE or @NODE:FOLDER, with a node from 0 to {}", word, kMaxNodes - 1);
  }
  if (colon == word.npos) return;
  program.folder = word.substr(colon + 1);
  if (!std::filesystem::is_directory(program.folder)) fail_usage("{}: {} is no folder", word, program.folder);
}

bool is_variable(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == word.npos || equals == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return false;
  for (const char c : word.substr(0, equals)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

}  // namespace

std::string SimulatedProgram::title() const {
  return fmt::format("node{}: {}", node, arguments.front());
}

std::vector<SimulatedProgram> parse_programs(const std::vector<std::string>& words) {
  std::vector<SimulatedProgram> programs;
  SimulatedProgram next;
  const auto finish = [&] {
    if (next.arguments.empty()) fail_usage("program {}: expected a program's name", programs.size() + 1);
    programs.push_back(next);
    next = {.node = static_cast<int>(programs.size()), .arguments = {}};
  };
  for (const std::string& word : words) {
    if (word == kNext) {
      finish();
    } else if (!next.arguments.empty()) {
      next.arguments.push_back(word);
    } else if (word.starts_with('@')) {
      place(next, word);
    } else if (is_variable(word)) {
      next.environment.push_back(word);
    } else {
      next.arguments.push_back(word);
    }
  }
  finish();
  return programs;
}

}  // namespace verbscope
