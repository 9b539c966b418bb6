#include "harness/cluster/hold.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "common/files.hpp"
#include "common/text.hpp"
#include "harness/cluster/hosts.hpp"
#include "harness/process/child.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kTailLines = 40;
constexpr std::size_t kLineBytes = 1000;
// Large enough for a record whose every byte is escaped in JSON.
constexpr std::size_t kAnswerBytes = kHeldRecord * 6 + 1000;

// Remote text is copied to records and terminals: limits its length and keeps printable ASCII only.
std::string clean(std::string text) {
  text.resize(std::min(text.size(), kLineBytes));
  return printable_ascii(std::move(text));
}

HoldEnd parse_end(const Json& content) {
  JsonFields fields(content, "end");
  HoldEnd end{.good = fields.require<bool>("good"), .text = clean(fields.require<std::string>("text")), .tail = {}};
  for (std::string& line : fields.require<std::vector<std::string>>("tail")) {
    if (end.tail.size() < kTailLines) end.tail.push_back(clean(std::move(line)));
  }
  return end;
}

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxRequest = 1 << 16;
// Time from SIGTERM to SIGKILL.
constexpr std::chrono::milliseconds kKillDelay{1000};

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
void send(const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = write(STDOUT_FILENO, left.data(), left.size());
    if (written < 0 && errno != EINTR) return;
    left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

void send_record(const std::string& path) {
  if (!std::filesystem::exists(path)) return;
  if (std::filesystem::file_size(path) > kHeldRecord) fail("the record is longer than {} bytes", kHeldRecord);
  send(hold_line("record", read_text_file(path)));
}

// Runs the command to its end and sends beats meanwhile.
HoldEnd run_held(const HoldRequest& request, const std::vector<std::string>& command) {
  std::size_t sent = 0;
  const auto send_output = [&sent](std::string_view chunk) {
    chunk = chunk.substr(0, kHeldOutput - std::min(kHeldOutput, sent));
    sent += chunk.size();
    if (!chunk.empty()) send(hold_line("out", std::string(chunk)));
  };
  const Clock::time_point deadline = Clock::now() + request.limit;
  StopSource input(STDIN_FILENO);
  Child child(command, send_output, request.environment);
  WaitEnd end = WaitEnd::timeout;
  while (end == WaitEnd::timeout && Clock::now() < deadline) {
    send(hold_line("beat", true));
    end = wait_for_end(child, std::min<Clock::time_point>(deadline, Clock::now() + kHoldBeat), &input);
  }
  if (end != WaitEnd::satisfied) child.end(kKillDelay);
  const std::string why =
      end == WaitEnd::timeout ? fmt::format(", not finished after {} ms", request.limit.count()) : "";
  return {.good = child.succeeded(), .text = child.end_text() + why, .tail = child.tail()};
}

}  // namespace

std::string to_line(const HoldRequest& request) {
  return dump_json(Json{{"command", request.command},
                        {"environment", request.environment},
                        {"limit_ms", request.limit.count()},
                        {"numa_node", request.numa_node}}) +
         "\n";
}

HoldRequest parse_hold_request(std::string_view line) {
  const Json json = parse_json_text(line, "request");
  JsonFields fields(json, "request");
  HoldRequest request{.command = fields.require<std::vector<std::string>>("command"),
                      .environment = fields.require<std::vector<std::string>>("environment"),
                      .limit = std::chrono::milliseconds(fields.require<int>("limit_ms", 1, 1'000'000'000)),
                      .numa_node = fields.require<int>("numa_node", -1, 1023)};
  fields.reject_unknown();
  if (request.command.empty()) fail("request: the command is empty");
  return request;
}

std::string hold_line(const std::string& what, Json content) {
  return std::string(kHoldMark) + dump_json(Json{{what, std::move(content)}}) + "\n";
}

Json to_json(const HoldEnd& end) {
  return Json{{"good", end.good}, {"text", end.text}, {"tail", end.tail}};
}

void HoldReader::feed(std::string_view chunk) {
  for (std::size_t end = chunk.find('\n'); end != std::string_view::npos; end = chunk.find('\n')) {
    partial_.append(chunk.substr(0, end));
    read_line(partial_);
    partial_.clear();
    chunk.remove_prefix(end + 1);
  }
  partial_.append(chunk.substr(0, kAnswerBytes - std::min(kAnswerBytes, partial_.size())));
}

void HoldReader::read_line(std::string_view line) {
  if (!line.starts_with(kHoldMark)) return;
  try {
    const Json answer = parse_json_text(line.substr(kHoldMark.size()), "answer");
    JsonFields fields(answer, "answer");
    if (fields.has("out")) {
      const auto text = fields.require<std::string>("out");
      output_.append(text, 0, kHeldOutput - std::min(kHeldOutput, output_.size()));
    }
    if (fields.has("record")) record_ = fields.require<std::string>("record");
    if (fields.has("end")) end_ = parse_end(fields.at("end"));
  } catch (const Error&) {  // ignored, like a line without the mark
  }
}

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
    send_record(folder.file("record.json"));
  } catch (const Error& error) {
    end = {.good = false, .text = error.what(), .tail = {}};
  }
  send(hold_line("end", to_json(end)));
  return 0;
}

}  // namespace verbscope
