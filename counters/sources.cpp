#include "counters/sources.hpp"

#include <algorithm>
#include <array>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/text.hpp"
#include "counters/kernel_sources.hpp"
#include "counters/papi_source.hpp"
#include "counters/tool_formats.hpp"
#include "counters/tool_source.hpp"
#include "drivers_patch/counter_report.hpp"
#include "drivers_patch/objects.hpp"
#include "drivers_patch/summary.hpp"

namespace verbscope {

namespace {

// Requests and completions of this process, counted inside the driver by drivers_patch/, with their computed PCIe cost.
// Precondition of start(): the process's contexts are attached.
class DriverSource final : public CounterSource {
 public:
  std::string name() const override { return "driver"; }
  void start() override {
    if (!driver::counting()) fail("driver counters: this process opened the device without counting");
  }
  void read(Moment moment) override {
    const Picos before = TscClock::now();
    const driver::Sums sums = driver::summarize_process().whole;
    const Picos after = TscClock::now();
    readings_[static_cast<std::size_t>(moment)] = {before + (after - before) / 2, sums};
  }
  CounterReport report(double /*ops_per_s*/) override {
    const Reading &begin = at(Moment::window_begin), &end = at(Moment::window_end);
    return driver::counter_report(driver::summarize_process().wire, driver::difference(end.sums, begin.sums),
                                  to_seconds(end.time - begin.time));
  }

 private:
  struct Reading {
    Picos time{0};
    driver::Sums sums;
  };
  const Reading& at(Moment moment) const { return readings_[static_cast<std::size_t>(moment)]; }

  std::array<Reading, kMoments> readings_;
};

using SourcePtr = std::unique_ptr<CounterSource>;

struct SourceBuilder {
  const CounterPlace& place;
  std::vector<const ToolSource*> tools{};  // made so far

  SourcePtr add_tool(Tool tool, std::unique_ptr<ToolFormat> format) {
    auto source = std::make_unique<ToolSource>(std::move(tool), std::move(format));
    tools.push_back(source.get());
    return source;
  }
};

struct Kind {
  const char* name;
  SourcePtr (*make)(SourceBuilder& builder);
  bool in_auto = true;  // false: it costs the benchmark instructions, or must be installed or set up
};

// The list of all sources, in the order of records. The tools precede PAPI, which checks whether one of them runs.
constexpr Kind kKinds[] = {
    {"pcm-pcie",
     [](SourceBuilder& builder) {
       return builder.add_tool(pcm_pcie_tool(builder.place.window, builder.place.patience),
                               std::make_unique<PcmPcieFormat>());
     }},
    {"pcm-iio",
     [](SourceBuilder& builder) {
       const std::string root_port = builder.place.device.empty() ? "" : root_port_of(builder.place.device);
       return builder.add_tool(pcm_iio_tool(builder.place.window, builder.place.patience),
                               std::make_unique<PcmIioFormat>(root_port));
     }},
    {"papi",
     [](SourceBuilder& builder) -> SourcePtr {
       const auto tool_runs = [tools = builder.tools] { return std::ranges::any_of(tools, &ToolSource::started); };
       return std::make_unique<PapiSource>(papi_library(), tool_runs);
     }},
    {"nic",
     [](SourceBuilder& builder) -> SourcePtr {
       return std::make_unique<NicSource>(NicPlace{builder.place.device, builder.place.ports}, read_ethtool);
     }},
    {"neo-host",
     [](SourceBuilder& builder) -> SourcePtr {
       const std::string address = builder.place.device.empty() ? "" : pci_address_of(builder.place.device);
       return std::make_unique<ToolSource>(neo_host_tool(address, builder.place.patience),
                                           std::make_unique<NeoHostFormat>(), "neo-host");
     },
     false},
    {"rdma-statistic",
     [](SourceBuilder& builder) -> SourcePtr {
       return std::make_unique<RdmaStatisticSource>(builder.place.device, builder.place.ports);
     },
     false},
    {"driver", [](SourceBuilder&) -> SourcePtr { return std::make_unique<DriverSource>(); }, false},
};

std::vector<std::string> auto_sources() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    if (kind.in_auto) names.emplace_back(kind.name);
  }
  return names;
}

}  // namespace

const std::vector<std::string>& counter_sources() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kKinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

std::vector<std::string> parse_counters(const std::string& text, const std::string& option, bool device) {
  if (text == "none") return {};
  if (text == "auto") return device ? auto_sources() : std::vector<std::string>{};
  const std::vector<std::string> requested = split(text, ',');
  for (const std::string& name : requested) {
    if (std::ranges::count(counter_sources(), name) == 1 && std::ranges::count(requested, name) == 1) continue;
    fail_usage("{}: expected auto, none or a list of {}, each once; got \"{}\"", option,
               fmt::join(counter_sources(), ", "), text);
  }
  std::vector<std::string> names;
  for (const std::string& name : counter_sources()) {
    if (std::ranges::count(requested, name) == 1) names.push_back(name);
  }
  return names;
}

CountersNeeded counters_needed(const std::string& text, bool required, const std::string& node) {
  if (required) return CountersNeeded::all;
  return text == "auto" || text == "none" || node != "server" ? CountersNeeded::none : CountersNeeded::one;
}

std::vector<std::unique_ptr<CounterSource>> make_sources(const std::vector<std::string>& names,
                                                         const CounterPlace& place) {
  SourceBuilder builder{.place = place};
  std::vector<std::unique_ptr<CounterSource>> sources;
  for (const Kind& kind : kKinds) {
    if (std::ranges::count(names, kind.name) > 0) sources.push_back(kind.make(builder));
  }
  return sources;
}

}  // namespace verbscope
