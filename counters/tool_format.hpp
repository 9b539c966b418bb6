// The output of a counting tool: blocks of a header and its rows, one block an interval, with other text before and
// between them. A tool prints a block when the interval is over, so that the header's arrival is the interval's end.
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
  damaged,  // begins like a row and is none: cut off, or overwritten
};

// The format of one tool's lines: how they are told apart and read.
class ToolFormat {
 public:
  virtual ~ToolFormat() = default;
  // Looks at one line. A row is added to `sums`. Throws Error at a header whose columns are not known.
  virtual LineKind take(const Fields& fields, Sums& sums) = 0;
  // The meaning of the columns, and what they cannot tell; known behind a header.
  virtual std::vector<EventRule> rules() const = 0;
  virtual std::string blind() const = 0;
  // Seconds that the numbers of a block stand for, when the tool was asked for intervals of `asked_ms`, and keeps them
  // or sleeps twice as long.
  virtual double counted_s(std::uint32_t asked_ms, bool sleeps_twice) const = 0;
  // What the record has of the tool beside its counts. An object.
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

  // Takes output as it came, in pieces of any size; a line that does not end is not taken. Throws Error.
  void feed(std::string_view piece, Picos now);
  // The complete blocks: undamaged, with as many rows as the largest.
  std::vector<ToolInterval> whole_intervals() const;
  std::size_t blocks() const { return intervals_.size(); }
  // How long a block took, from header to header: the mean and the shortest. None before the second header.
  struct Period {
    Picos mean{0}, shortest{0};
  };
  std::optional<Period> period() const;
  // Forgets all that came, for a tool that is started anew.
  void clear();
  // Blocks that are not whole, not counting the last one, whose rows may still come.
  std::size_t damaged() const;

 private:
  void take_line(std::string_view line, Picos now);
  std::size_t full_rows() const;

  ToolFormat& format_;
  std::string partial_;
  bool too_long_ = false;
  std::vector<ToolInterval> intervals_;
};

// "a,b,,c" as {"a", "b", "", "c"}; blanks at the ends of a field do not count.
Fields split_fields(std::string_view line);

// The whole of `text` as a number; false when it is none, or over 64 bits.
bool parse_count(std::string_view text, std::uint64_t& value);

// Adds to sums[name]; false when the sum is over 64 bits.
bool add_count(Sums& sums, const std::string& name, std::uint64_t value);

}  // namespace verbscope
