#include "harness/sweep/progress.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {

namespace {
// Keeps the rewritten line within a terminal of 80 columns.
constexpr std::size_t kTerminalColumns = 79;
}  // namespace

Progress::Progress(TimeLeft time_left, std::FILE* out, bool terminal)
    : time_left_(std::move(time_left)), out_(out), terminal_(terminal) {}

std::string Progress::left_text() const {
  if (done_ == 0 || done_ == time_left_.count()) return "";
  return fmt::format(", {} left", duration_text(time_left_.left()));
}

void Progress::started(const std::string& name) {
  if (!terminal_) return;
  say(fmt::format("[{}/{}{}] {}", done_ + 1, time_left_.count(), left_text(), name).substr(0, kTerminalColumns), false);
}

void Progress::finished(std::size_t place, const std::string& name, const std::string& outcome,
                        std::chrono::duration<double> took) {
  ++done_;
  time_left_.ended(place, took);
  say(fmt::format("[{}/{}] {}: {} ({}{})", done_, time_left_.count(), name, outcome, duration_text(took), left_text()),
      true);
}

// A sweep continues if its progress cannot be printed; check_standard_output reports the error at the end.
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
