#include "harness/cluster/hold.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "common/files.hpp"
#include "harness/cluster/hold_protocol.hpp"
#include "harness/process/child.hpp"
#include "harness/process/cores.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxRequest = 1 << 16;
// Time from SIGTERM to SIGKILL.
constexpr std::chrono::milliseconds kPatience{1000};

// Reads one line byte by byte, so that nothing after it is consumed: the wait below watches standard input.
std::string read_request() {
  std::string line;
  for (char c = 0; line.size() < kMaxRequest; line += c) {
    const ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read the request", errno);
    if (got == 0 || c == '\n') return line;
  }
  fail("the request is longer than {} bytes", kMaxRequest);
}

// Write errors are ignored: if the harness has gone, standard input closes too.
void say(const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = write(STDOUT_FILENO, left.data(), left.size());
    if (written < 0 && errno != EINTR) return;
    left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

void say_record(const std::string& path) {
  if (!std::filesystem::exists(path)) return;
  if (std::filesystem::file_size(path) > kHeldRecord) fail("its record is longer than {} bytes", kHeldRecord);
  say(hold_line("record", read_text_file(path)));
}

// Runs the command to its end and sends beats meanwhile.
HoldEnd run_held(const HoldRequest& request, const std::vector<std::string>& command) {
  std::size_t told = 0;
  const auto tell = [&told](std::string_view chunk) {
    chunk = chunk.substr(0, kHeldOutput - std::min(kHeldOutput, told));
    told += chunk.size();
    if (!chunk.empty()) say(hold_line("out", std::string(chunk)));
  };
  const Clock::time_point deadline = Clock::now() + request.limit;
  StopSource input(STDIN_FILENO);
  Child child(command, tell, request.environment);
  const auto ended = [&child] { return !child.running(); };
  WaitEnd end = WaitEnd::timeout;
  while (end == WaitEnd::timeout && Clock::now() < deadline) {
    say(hold_line("beat", true));
    end = wait_children({&child}, std::min<Clock::time_point>(deadline, Clock::now() + kHoldBeat), &input, ended);
  }
  if (end != WaitEnd::satisfied) child.end(kPatience);
  const std::string why = end == WaitEnd::timeout ? fmt::format(", no end after {} ms", request.limit.count()) : "";
  return {.good = child.succeeded(), .text = child.end_text() + why, .tail = child.tail()};
}

}  // namespace

int hold_program() {
  std::signal(SIGPIPE, SIG_IGN);
  const HoldRequest request = parse_hold_request(read_request());
  HoldEnd end;
  try {
    const TempFolder folder;
    std::vector<std::string> command = request.command;
    if (request.numa_node >= 0) command.push_back("--cores=" + cores_of_node(request.numa_node));
    command.push_back("--out_json_file=" + folder.file("record.json"));
    end = run_held(request, command);
    say_record(folder.file("record.json"));
  } catch (const Error& error) {
    end = {.good = false, .text = error.what(), .tail = {}};
  }
  say(hold_line("end", to_json(end)));
  return 0;
}

}  // namespace verbscope
