#include "harness/sweep/progress.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {

namespace {
// The rewritten line stays a single one on a terminal of the usual 80 columns.
constexpr std::size_t kTerminalColumns = 79;
}  // namespace

Progress::Progress(std::size_t total, std::FILE* out, bool terminal) : total_(total), out_(out), terminal_(terminal) {}

// The points still to run take as long as those that ran, on average.
std::string Progress::left_text() const {
  if (done_ == 0 || done_ == total_) return "";
  const auto mean = spent_ / static_cast<double>(done_);
  return fmt::format(", {} left", duration_text(mean * static_cast<double>(total_ - done_)));
}

void Progress::started(const std::string& point) {
  if (!terminal_) return;
  say(fmt::format("[{}/{}{}] {}", done_ + 1, total_, left_text(), point).substr(0, kTerminalColumns), false);
}

void Progress::finished(const std::string& point, const std::string& outcome, std::chrono::duration<double> took) {
  ++done_;
  spent_ += took;
  say(fmt::format("[{}/{}] {}: {} ({}{})", done_, total_, point, outcome, duration_text(took), left_text()), true);
}

// A sweep goes on where nobody can be told of it any more; the program says so at its end (check_standard_output).
void Progress::say(const std::string& line, bool ended) {
  try {
    if (terminal_) {
      rewrite_line(out_, fmt::format("{:<{}}", line, kTerminalColumns));
    } else {
      print_text(out_, line);
    }
    if (ended) print_text(out_, "\n");
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error&) {
  }
}

std::string duration_text(std::chrono::duration<double> duration) {
  const double s = duration.count();
  if (s < 9.95) return fmt::format("{:.1f} s", s);
  const auto whole = static_cast<long long>(std::llround(s));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace verbscope
