// A counting tool that runs beside the benchmark as a source: of the intervals that it prints, those that lie in the
// window as a whole are counted and scaled to the window.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/bell.hpp"
#include "counters/source.hpp"
#include "counters/tool_format.hpp"
#include "counters/tool_process.hpp"

namespace verbscope {

struct Tool {
  std::string name;                    // the program
  std::vector<std::string> arguments;  // after the name
  std::uint32_t interval_ms = 0;       // the interval that the arguments ask for
  Picos start_limit{0};                // longest time to its first interval: it looks the machine over first
  Picos window{0};                     // length of the window that is counted; 0: not known before
  bool takes_interval = true;          // else it has one of its own
};

// pcm-pcie and pcm-iio for a window of this length; zero: not known before. Intervals are such that the window has
// many, and that the tool has begun and seen the background within `patience`, or is given up.
Tool pcm_pcie_tool(Picos window, Picos patience);
Tool pcm_iio_tool(Picos window, Picos patience);
// NVIDIA NEO-Host, of the adapter at this PCIe address; its intervals are its own.
Tool neo_host_tool(const std::string& address, Picos patience);

class ToolSource final : public CounterSource {
 public:
  // `name` of the source; empty: that of the program.
  ToolSource(Tool tool, std::unique_ptr<ToolFormat> format, std::string name = "");
  ~ToolSource() override;

  // Whether the tool could be started.
  bool started() const { return thread_.joinable(); }
  std::string name() const override { return name_.empty() ? tool_.name : name_; }
  void start() override;
  bool background_done() override;
  void read(Moment moment) override;
  CounterReport report(double ops_per_s) override;

 private:
  struct Part {
    std::size_t intervals = 0;
    Columns per_s;
  };
  // How a tool keeps the interval that it was asked for: as it is, with twice the sleep, or not at all.
  enum class Schedule { kept, twice, another };
  void follow(const std::stop_token& stop);
  void stop();
  bool background_seen() const;
  Schedule schedule() const;
  std::size_t blocks() const;
  std::string schedule_text() const;
  void check_alive() const;
  std::vector<ToolInterval> between(Moment begin, Moment end) const;
  Part part(Moment begin, Moment end) const;
  Picos at(Moment moment) const { return marks_[static_cast<std::size_t>(moment)]; }

  Tool tool_;
  std::string name_;
  std::unique_ptr<ToolFormat> format_;
  std::array<Picos, kMoments> marks_{};
  Picos started_{0};
  bool in_whole_seconds_ = false;  // started a second time, as it did not keep a part of a second

  mutable std::mutex mutex_;  // guards what the reading thread writes
  ToolLog log_;
  std::string failure_;

  std::optional<ToolProcess> process_;  // the thread's alone while it runs
  Bell to_end_;                         // rung: the thread is to end
  std::jthread thread_;
};

}  // namespace verbscope
