// `verbscope hold`: the remote end of a launcher. It runs one program for a harness on another host and ends it when
// its own standard input is closed: by the harness, by the death of the harness, or by a lost connection. There is no
// daemon, and nothing to clean up.
//
// Protocol between the harness and `verbscope hold`, on the standard streams of a launcher. The harness writes a
// request of one line and keeps the stream open: closing it ends the program. `hold` answers in lines that begin with
// kHoldMark. Other lines come from login scripts or the launcher and are ignored.
//
//   harness                          hold
//   request line              --->
//                             <---   out   output of the program, at most kHeldOutput in total
//                             <---   beat  every kHoldBeat while the program runs
//                             <---   record, end (how the program ended, its last lines)
#pragma once

#include <chrono>
#include <cstddef>
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

// A program to run: its path and arguments, and variables "NAME=value". `hold` adds the option for the record file.
struct HoldRequest {
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::chrono::milliseconds limit{0};  // time limit of the program, also without a connection
  int numa_node = -1;                  // its threads run on this node's cores; -1: no restriction
};

// to_line formats a request as one line that ends with a newline; parse_hold_request parses it, and throws if it is not
// a request.
std::string to_line(const HoldRequest& request);
HoldRequest parse_hold_request(std::string_view line);

// How a program that `hold` ran has ended.
struct HoldEnd {
  bool good = false;
  std::string text;               // "exit status 3"
  std::vector<std::string> tail;  // last lines of output, printable
};

// One answer as a line. `what`: "out", "beat", "record" or "end".
std::string hold_line(const std::string& what, Json content);
Json to_json(const HoldEnd& end);

// Parses the answers. Bounds the size of all input, and ignores malformed answers.
class HoldReader {
 public:
  void feed(std::string_view chunk);

  const std::string& output() const { return output_; }
  const std::optional<std::string>& record() const { return record_; }
  const std::optional<HoldEnd>& end() const { return end_; }

 private:
  void read_line(std::string_view line);

  std::string partial_, output_;
  std::optional<std::string> record_;
  std::optional<HoldEnd> end_;
};

// Runs this protocol on standard input and output. Returns 0 once the end of the program was
// reported, whatever its status. Throws for an invalid request.
int hold_program();

}  // namespace verbscope
