#include "counters/tool_log.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

Fields split_fields(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  Fields fields;
  for (bool more = true; more;) {
    const std::size_t comma = line.find(',');
    more = comma != line.npos;
    std::string_view field = line.substr(0, comma);
    if (more) line.remove_prefix(comma + 1);
    field.remove_prefix(std::min(field.size(), field.find_first_not_of(kBlank)));
    fields.push_back(field.substr(0, field.find_last_not_of(kBlank) + 1));
  }
  return fields;
}

bool add_count(Sums& sums, const std::string& name, std::uint64_t value) {
  std::uint64_t& sum = sums[name];
  return !__builtin_add_overflow(sum, value, &sum);
}

void ToolLog::feed(std::string_view piece, Picos now) {
  while (!piece.empty()) {
    const std::size_t newline = piece.find('\n');
    const std::string_view part = piece.substr(0, newline);
    too_long_ = too_long_ || partial_.size() + part.size() > kMaxLine;
    if (!too_long_) partial_ += part;
    if (newline == piece.npos) return;
    piece.remove_prefix(newline + 1);
    const std::string line = std::exchange(partial_, {});
    if (!std::exchange(too_long_, false)) take_line(line, now);
  }
}

void ToolLog::take_line(std::string_view line, Picos now) {
  ToolInterval scratch;  // for rows before the first header, which are ignored
  ToolInterval& current = intervals_.empty() ? scratch : intervals_.back();
  switch (format_.take(split_fields(line), current.sums)) {
    case LineKind::header:
      if (intervals_.size() == kMaxIntervals) fail("more than {} intervals", kMaxIntervals);
      intervals_.push_back({now, now, 0, false, {}});
      break;
    case LineKind::row:
      ++current.rows;
      current.last_line = now;
      break;
    case LineKind::damaged:
      current.damaged = true;
      current.last_line = now;
      break;
    case LineKind::text:
      break;
  }
}

std::size_t ToolLog::full_rows() const {
  const auto most = std::ranges::max_element(intervals_, {}, &ToolInterval::rows);
  return most == intervals_.end() ? 0 : most->rows;
}

std::vector<ToolInterval> ToolLog::whole_intervals() const {
  std::vector<ToolInterval> whole;
  const std::size_t rows = full_rows();
  for (const ToolInterval& interval : intervals_) {
    if (!interval.damaged && interval.rows == rows && rows > 0) whole.push_back(interval);
  }
  return whole;
}

std::optional<ToolLog::Period> ToolLog::period() const {
  if (intervals_.size() < 2) return std::nullopt;
  const auto periods = static_cast<Picos::rep>(intervals_.size() - 1);
  Period period{(intervals_.back().end - intervals_.front().end) / periods, Picos::max()};
  for (std::size_t i = 1; i < intervals_.size(); ++i) {
    period.shortest = std::min(period.shortest, intervals_[i].end - intervals_[i - 1].end);
  }
  return period;
}

void ToolLog::clear() {
  partial_.clear();
  too_long_ = false;
  intervals_.clear();
}

std::size_t ToolLog::damaged() const {
  const std::size_t rows = full_rows();
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < intervals_.size(); ++i) count += intervals_[i].damaged || intervals_[i].rows != rows;
  return count;
}

}  // namespace verbscope
