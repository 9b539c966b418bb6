#include "harness/cluster/hold_protocol.hpp"

#include <algorithm>

namespace verbscope {
namespace {

constexpr std::size_t kTailLines = 40;
constexpr std::size_t kLineBytes = 1000;
// Fits a record of which every byte is escaped in JSON.
constexpr std::size_t kAnswerBytes = kHeldRecord * 6 + 1000;

// Remote text is copied to records and terminals: limits its length and keeps printable ASCII only.
std::string clean(std::string text) {
  text.resize(std::min(text.size(), kLineBytes));
  std::ranges::replace_if(
      text, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

HoldEnd parse_end(const Json& content) {
  JsonFields fields(content, "end");
  HoldEnd end{.good = fields.require<bool>("good"), .text = clean(fields.require<std::string>("text")), .tail = {}};
  for (std::string& line : fields.require<std::vector<std::string>>("tail")) {
    if (end.tail.size() < kTailLines) end.tail.push_back(clean(std::move(line)));
  }
  return end;
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
    take(partial_);
    partial_.clear();
    chunk.remove_prefix(end + 1);
  }
  partial_.append(chunk.substr(0, kAnswerBytes - std::min(kAnswerBytes, partial_.size())));
}

void HoldReader::take(std::string_view line) {
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

}  // namespace verbscope
