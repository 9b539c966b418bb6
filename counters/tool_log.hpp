// Output of a counting tool: one block per interval, with a header and rows. Other text may precede or separate the
// blocks. A tool prints a block at the end of its interval, so the header's arrival marks the end of the interval.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"
#include "counters/source.hpp"

namespace verbscope {

using Fields = std::vector<std::string_view>;

enum class LineKind {
  text,    // neither header nor row
  header,  // begins a block
  row,
  damaged,  // begins like a row but is truncated or overwritten
};

// The line format of one tool.
class ToolFormat {
 public:
  virtual ~ToolFormat() = default;
  // Classifies one line. Adds a row to `sums`. Throws Error at a header with unknown columns.
  virtual LineKind take(const Fields& fields, Sums& sums) = 0;
  // The meaning of the columns, and what they do not show. Valid after a header.
  virtual std::vector<EventRule> rules() const = 0;
  virtual std::string blind() const = 0;
  // Seconds that the numbers of a block represent, if the tool was asked for intervals of `asked_ms` and keeps them, or
  // sleeps twice as long.
  virtual double counted_s(std::uint32_t asked_ms, bool sleeps_twice) const = 0;
  // Further data of the tool for the record, an object.
  virtual Json extra() const { return Json::object(); }
};

struct ToolInterval {
  Picos end{0};        // arrival of the header
  Picos last_line{0};  // arrival of the last row
  std::size_t rows = 0;
  bool damaged = false;
  Sums sums;  // over the rows
};

// The blocks of a tool's output.
class ToolLog {
 public:
  static constexpr std::size_t kMaxIntervals = 100'000;
  static constexpr std::size_t kMaxLine = 8192;  // bytes

  explicit ToolLog(ToolFormat& format) : format_(format) {}

  // Accepts output in pieces of any size. Ignores a line until it is complete. Throws Error.
  void feed(std::string_view piece, Picos now);
  // The complete blocks: undamaged, and with as many rows as the largest one.
  std::vector<ToolInterval> whole_intervals() const;
  std::size_t blocks() const { return intervals_.size(); }
  // Time from header to header: mean and shortest. Nothing before the second header.
  struct Period {
    Picos mean{0}, shortest{0};
  };
  std::optional<Period> period() const;
  // Discards all output, for a restarted tool.
  void clear();
  // Number of incomplete blocks, except the last one, whose rows may still arrive.
  std::size_t damaged() const;

 private:
  void take_line(std::string_view line, Picos now);
  std::size_t full_rows() const;

  ToolFormat& format_;
  std::string partial_;
  bool too_long_ = false;
  std::vector<ToolInterval> intervals_;
};

// Splits "a,b,,c" into {"a", "b", "", "c"} and removes blanks around the fields.
Fields split_fields(std::string_view line);

// Adds to sums[name]. Returns false if the sum exceeds 64 bits.
bool add_count(Sums& sums, const std::string& name, std::uint64_t value);

}  // namespace verbscope
