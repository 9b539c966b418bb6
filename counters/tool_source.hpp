// A counting tool that runs alongside the benchmark. Its intervals that lie entirely in the measurement window are
// counted and scaled to the window.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/fd.hpp"
#include "counters/source.hpp"
#include "counters/tool_log.hpp"
#include "counters/tool_process.hpp"

namespace verbscope {

struct Tool {
  std::string name;                    // the program
  std::vector<std::string> arguments;  // after the name
  std::uint32_t interval_ms = 0;       // the interval that the arguments ask for
  Picos start_limit{0};                // longest time until its first interval; it first inspects the machine
  Picos window{0};                     // length of the measurement window; 0: unknown
  bool takes_interval = true;          // false: the tool has a fixed interval
};

// pcm-pcie and pcm-iio for a window of this length; 0: unknown. Their interval is short enough for many intervals in
// the window, and for starting and measuring the background within `patience`, after which the tool is given up.
Tool pcm_pcie_tool(Picos window, Picos patience);
Tool pcm_iio_tool(Picos window, Picos patience);
// NVIDIA NEO-Host for the adapter at this PCIe address. It has a fixed interval.
Tool neo_host_tool(const std::string& address, Picos patience);

class ToolSource final : public CounterSource {
 public:
  // `name` of the source; empty: the program's name.
  ToolSource(Tool tool, std::unique_ptr<ToolFormat> format, std::string name = "");
  ~ToolSource() override;

  // True if the tool was started.
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
  // The interval that the tool uses, compared with the requested one. doubled: see kMinDoubled.
  enum class Timing { as_requested, doubled, unknown };
  void follow(const std::stop_token& stop);
  void stop();
  bool background_measured() const;
  Timing timing() const;
  std::size_t blocks() const;
  std::string timing_text() const;
  void check_alive() const;
  std::vector<ToolInterval> between(Moment begin, Moment end) const;
  Part part(Moment begin, Moment end) const;
  Picos at(Moment moment) const { return marks_[static_cast<std::size_t>(moment)]; }

  Tool tool_;
  std::string name_;
  std::unique_ptr<ToolFormat> format_;
  std::array<Picos, kMoments> marks_{};
  Picos started_{0};
  bool in_whole_seconds_ = false;  // restarted, because it did not keep a fraction of a second

  mutable std::mutex mutex_;  // guards the data that the reading thread writes
  ToolLog log_;
  std::string failure_;

  std::optional<ToolProcess> process_;  // used only by the thread while it runs
  EventFd wake_;                        // ends a wait of the thread
  std::jthread thread_;
};

}  // namespace verbscope
