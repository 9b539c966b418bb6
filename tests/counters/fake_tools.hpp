// Puts the fake counting tools (tests/counters/fake_tools) first in PATH during a test.
#pragma once

#include <cstdlib>
#include <string>

namespace verbscope::test {

class FakeTools {
 public:
  // `setting` is "NAME=value" for the tools, or empty.
  explicit FakeTools(const std::string& setting)
      : path_(std::getenv("PATH")), name_(setting.substr(0, setting.find('='))) {
    setenv("PATH", (std::string(VERBSCOPE_SOURCE_DIR) + "/tests/counters/fake_tools:" + path_).c_str(), 1);
    if (!name_.empty()) setenv(name_.c_str(), setting.substr(name_.size() + 1).c_str(), 1);
  }
  FakeTools(const FakeTools&) = delete;
  FakeTools& operator=(const FakeTools&) = delete;
  ~FakeTools() {
    setenv("PATH", path_.c_str(), 1);
    if (!name_.empty()) unsetenv(name_.c_str());
  }

 private:
  std::string path_, name_;
};

}  // namespace verbscope::test
