// Runs a program of the build and keeps what it said.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope::test {

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;

  // What it said of itself: not that tests beside this one hold all cores, so that the run shares one.
  std::string own_errors() const {
    std::string own;
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("warning: no other core is free than") == std::string::npos) own += line + '\n';
    }
    return own;
  }
  long error_lines() const {
    const std::string own = own_errors();
    return std::count(own.begin(), own.end(), '\n');
  }
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

// The record of a run that must end well; after one that did not, one with an empty result.
inline Json record_of(const std::string& command) {
  const Ran ran = run_program(command + " --out_json_file -");
  EXPECT_EQ(ran.exit_code, 0) << command << ": " << ran.err;
  return ran.exit_code == 0 ? parse_json_text(ran.out, command) : Json{{"result", Json::object()}};
}

// The records of a run that measures several points, and must end well.
inline std::vector<Json> records_of(const std::string& command) {
  const Ran ran = run_program(command + " --out_json_file -");
  EXPECT_EQ(ran.exit_code, 0) << command << ": " << ran.err;
  std::vector<Json> records;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) records.push_back(parse_json_text(line, command));
  return records;
}

inline Json result_of(const std::string& command) {
  return record_of(command).at("result");
}

// The one line with which a run is refused as a mistake of usage, which it must be.
inline std::string refusal_of(const std::string& command) {
  const Ran ran = run_program(command);
  EXPECT_EQ(ran.exit_code, 2) << command << ": " << ran.out;
  EXPECT_EQ(ran.error_lines(), 1) << ran.err;
  return ran.err;
}

}  // namespace verbscope::test
