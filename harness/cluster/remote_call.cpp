#include "harness/cluster/remote_call.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "harness/process/child.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kMaxOutput = 1 << 20;

}  // namespace

std::string remote_call(Launcher& launcher, const Host& host, const std::string& what,
                        const std::vector<std::string>& words, std::chrono::seconds limit, StopSource* stop, Fd input) {
  try {
    std::string output;
    Child child(
        launcher.command(host, words),
        [&output](std::string_view chunk) {
          output.append(chunk.substr(0, kMaxOutput - std::min(kMaxOutput, output.size())));
        },
        {}, std::move(input));
    const WaitEnd end =
        wait_children({&child}, std::chrono::steady_clock::now() + limit, stop, [&child] { return !child.running(); });
    if (end == WaitEnd::interrupted) fail("interrupted");
    if (end == WaitEnd::timeout) {
      launcher.lost(host);
      fail("no end after {} s", limit.count());
    }
    if (child.succeeded()) return output;
    const std::vector<std::string> tail = child.tail();
    fail("{}{}", child.end_text(), tail.empty() ? "" : ": " + tail.back());
  } catch (const Error& error) {
    if (stop != nullptr && stop->pending()) {
      throw InterruptedError(fmt::format("host {}: {}: interrupted", host.name, what));
    }
    fail("host {}: {}: {}", host.name, what, error.what());
  }
}

}  // namespace verbscope
