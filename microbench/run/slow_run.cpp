#include "microbench/run/slow_run.hpp"

#include <chrono>
#include <utility>

#include "common/terminal.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr auto kFirst = 5s;
constexpr auto kEach = 15s;

}  // namespace

SlowRun::SlowRun(std::string what)
    : what_(std::move(what)), thread_([this](const std::stop_token& stop) { tell(stop); }) {}

void SlowRun::does(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void SlowRun::tell(const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (auto next = begin + kFirst; !woken_.wait_until(lock, stop, next, [] { return false; }); next += kEach) {
    if (stop.stop_requested()) return;
    print_error(
        fmt::format("after {} s: {}", std::chrono::duration_cast<std::chrono::seconds>(next - begin).count(), what_));
  }
}

}  // namespace verbscope
