// Runs a program of the build and keeps what it said.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/common/temp_dir.hpp"

namespace verbscope::test {

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;

  long error_lines() const { return std::count(err.begin(), err.end(), '\n'); }
};

// `command` begins with the name of a program in build/bin, for example "send_rate --fabric null".
inline Ran run_program(const std::string& command) {
  const TempDir folder;
  const auto out = folder / "out";
  const auto err = folder / "err";
  const std::string line = std::string(VERBSCOPE_BINARY_DIR) + "/bin/" + command + " >" + out.string() + " 2>" +
                           err.string() + " </dev/null";
  const int status = std::system(line.c_str());
  const auto text = [](const std::filesystem::path& path) {
    std::ostringstream content;
    content << std::ifstream(path).rdbuf();
    return content.str();
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text(out), text(err)};
}

}  // namespace verbscope::test
