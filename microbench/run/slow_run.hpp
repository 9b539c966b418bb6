// What a run is at, told on standard error when it takes more than a few seconds here.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace verbscope {

class SlowRun {
 public:
  explicit SlowRun(std::string what);

  // From now on the run does this: "the warm-up".
  void does(std::string what);

 private:
  void tell(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::string what_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace verbscope
