// The harness and `verbscope hold` talk over the standard streams of a launcher. The harness writes
// one line, the request, and keeps its end open: closing it ends the program. `hold` answers in lines that begin with
// kHoldMark; whatever else arrives was printed by a login script or by the launcher itself, and is kept as noise.
//
//   harness                          hold
//   request line              --->
//                             <---   out   what the program printed, at most kHeldOutput in all
//                             <---   beat  every kHoldBeat: the host is alive
//                             <---   record, end (how the program ended, its last lines)
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

inline constexpr std::string_view kHoldMark = "verbscope-hold ";
inline constexpr std::chrono::seconds kHoldBeat{2};
inline constexpr std::size_t kHeldOutput = 1 << 16;
inline constexpr std::size_t kHeldRecord = 4u << 20;

// A program to run: its path, its arguments, variables "NAME=value" for it. The record file's option is added there.
struct HoldRequest {
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::chrono::milliseconds limit{0};  // it is ended after so long, even when nobody asks any more
  int numa_node = -1;                  // its threads get the cores of this node; -1: no such wish
};

// to_line writes a request as one line with its newline, parse_hold_request reads it. Throws on a line that is no
// request.
std::string to_line(const HoldRequest& request);
HoldRequest parse_hold_request(std::string_view line);

// The end of a held program.
struct HoldEnd {
  bool good = false;
  std::string text;               // "exit status 3"
  std::vector<std::string> tail;  // last lines of output, printable
};

// One answer, as a line. `what` is "out", "beat", "record" or "end".
std::string hold_line(const std::string& what, Json content);
Json to_json(const HoldEnd& end);

// Reads the answers. What the other side sends is bounded and never trusted: a broken answer counts as noise.
class HoldReader {
 public:
  void feed(std::string_view chunk);

  const std::string& output() const { return output_; }
  const std::optional<std::string>& record() const { return record_; }
  const std::optional<HoldEnd>& end() const { return end_; }

 private:
  void take(std::string_view line);

  std::string partial_, output_;
  std::optional<std::string> record_;
  std::optional<HoldEnd> end_;
};

}  // namespace verbscope
