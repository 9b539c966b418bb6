#include "counters/collector.hpp"

#include <algorithm>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "counters/ethtool.hpp"
#include "counters/nic_source.hpp"
#include "counters/papi_source.hpp"
#include "counters/pcm_iio.hpp"
#include "counters/pcm_pcie.hpp"
#include "counters/tool_source.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr Picos kBackground = 100ms;  // at least
constexpr auto kLook = 1ms;           // how often sources are asked whether they have seen enough

}  // namespace

const std::vector<std::string>& counter_sources() {
  static const std::vector<std::string> names{"pcm-pcie", "pcm-iio", "papi", "nic"};
  return names;
}

std::vector<std::string> parse_counters(const std::string& text, const std::string& option, bool device) {
  if (text == "none") return {};
  if (text == "auto") return device ? counter_sources() : std::vector<std::string>{};
  std::vector<std::string> asked;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    asked.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const std::string& name : asked) {
    if (std::ranges::count(counter_sources(), name) == 1 && std::ranges::count(asked, name) == 1) continue;
    fail_usage("{}: expected auto, none or a list of {}, each once; got \"{}\"", option,
               fmt::join(counter_sources(), ", "), text);
  }
  std::vector<std::string> names;
  for (const std::string& name : counter_sources()) {
    if (std::ranges::count(asked, name) == 1) names.push_back(name);
  }
  return names;
}

std::vector<std::unique_ptr<CounterSource>> make_sources(const std::vector<std::string>& names,
                                                         const CounterPlace& place) {
  std::vector<std::unique_ptr<CounterSource>> sources;
  std::vector<const ToolSource*> tools;
  const auto add_tool = [&](Tool tool, std::unique_ptr<ToolFormat> format) {
    auto source = std::make_unique<ToolSource>(std::move(tool), std::move(format));
    tools.push_back(source.get());
    sources.push_back(std::move(source));
  };
  for (const std::string& name : names) {
    if (name == "pcm-pcie") {
      add_tool(pcm_pcie_tool(place.window, place.patience), std::make_unique<PcmPcieFormat>());
    } else if (name == "pcm-iio") {
      const std::string root_port = place.device.empty() ? "" : root_port_of(place.device);
      add_tool(pcm_iio_tool(place.window, place.patience), std::make_unique<PcmIioFormat>(root_port));
    } else if (name == "papi") {
      // The tools come before it in every list.
      const auto tool_runs = [tools] { return std::ranges::any_of(tools, &ToolSource::started); };
      sources.push_back(std::make_unique<PapiSource>(papi_library(), tool_runs));
    } else {
      sources.push_back(std::make_unique<NicSource>(NicPlace{place.device, place.ports}, read_ethtool));
    }
  }
  return sources;
}

Collector::Collector(std::string node, std::vector<std::unique_ptr<CounterSource>> sources, bool required)
    : node_(std::move(node)), required_(required) {
  for (auto& source : sources) entries_.push_back({std::move(source), "", 0});
}

// Calls `action` for every source that still counts; one that throws does so no more.
template <class Action>
void Collector::each(Action&& action) {
  for (Entry& entry : entries_) {
    if (!entry.missing.empty()) continue;
    try {
      action(entry);
    } catch (const Error& error) {
      entry.missing = error.what();
    }
  }
}

std::string Collector::failure() const {
  for (const Entry& entry : entries_) {
    if (required_ && !entry.missing.empty()) {
      return fmt::format("{}: counters of {} are required: {}", node_, entry.source->name(), entry.missing);
    }
  }
  return "";
}

void Collector::measure_background() {
  each([](Entry& entry) { entry.source->start(); });
  each([](Entry& entry) { entry.source->read(Moment::background_begin); });
  const Picos begin = TscClock::now();
  const auto counting = [this] {
    return std::ranges::any_of(entries_, [](const Entry& e) { return e.missing.empty(); });
  };
  for (bool done = false; !done && counting();) {
    done = TscClock::now() - begin >= kBackground;
    each([&done](Entry& entry) { done = entry.source->background_done() && done; });
    if (!done) std::this_thread::sleep_for(kLook);
  }
  each([](Entry& entry) { entry.source->read(Moment::background_end); });
  if (const std::string line = failure(); !line.empty()) throw Error(line);
}

void Collector::attach(const std::vector<int>& threads) {
  each([&threads](Entry& entry) {
    entry.source->attach(threads);
    const Picos before = TscClock::now();
    entry.source->read(Moment::trial);
    entry.source->read(Moment::trial);
    entry.read_pair_ns = to_seconds(TscClock::now() - before) * 1e9;
  });
  if (const std::string line = failure(); !line.empty()) throw Error(line);
}

void Collector::begin_window() {
  each([](Entry& entry) { entry.source->read(Moment::window_begin); });
}

void Collector::end_window() {
  each([](Entry& entry) { entry.source->read(Moment::window_end); });
}

Collector::Collected Collector::collect(double ops_per_s) {
  Collected collected;
  for (Entry& entry : entries_) {
    CounterReport report;
    try {
      if (!entry.missing.empty()) throw Error(entry.missing);
      report = entry.source->report(ops_per_s);
      report.extra["read_pair_ns"] = entry.read_pair_ns;
    } catch (const Error& error) {
      entry.missing = error.what();
      report = missing_report(entry.source->name(), entry.missing);
    }
    report.node = node_;
    collected.reports.push_back(std::move(report));
  }
  collected.failure = failure();
  return collected;
}

}  // namespace verbscope
