#include "counters/sources.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "counters/driver_source.hpp"
#include "counters/ethtool.hpp"
#include "counters/neo_host.hpp"
#include "counters/nic_source.hpp"
#include "counters/papi_source.hpp"
#include "counters/pcm_iio.hpp"
#include "counters/pcm_pcie.hpp"
#include "counters/rdma_statistic.hpp"
#include "counters/tool_source.hpp"

namespace verbscope {

namespace {

using Made = std::unique_ptr<CounterSource>;

// Makes the sources of a run, one after another.
struct Maker {
  const CounterPlace& place;
  std::vector<const ToolSource*> tools{};  // made so far

  Made tool(Tool tool, std::unique_ptr<ToolFormat> format) {
    auto source = std::make_unique<ToolSource>(std::move(tool), std::move(format));
    tools.push_back(source.get());
    return source;
  }
};

struct Kind {
  const char* name;
  Made (*make)(Maker& maker);
  bool on_request = false;  // only if named: it costs the benchmark instructions, or must be installed or set up
};

// The list of all sources, in the order of records. The tools precede PAPI, which checks whether one of them runs.
constexpr Kind kKinds[] = {
    {"pcm-pcie",
     [](Maker& maker) {
       return maker.tool(pcm_pcie_tool(maker.place.window, maker.place.patience), std::make_unique<PcmPcieFormat>());
     }},
    {"pcm-iio",
     [](Maker& maker) {
       const std::string root_port = maker.place.device.empty() ? "" : root_port_of(maker.place.device);
       return maker.tool(pcm_iio_tool(maker.place.window, maker.place.patience),
                         std::make_unique<PcmIioFormat>(root_port));
     }},
    {"papi",
     [](Maker& maker) -> Made {
       const auto tool_runs = [tools = maker.tools] { return std::ranges::any_of(tools, &ToolSource::started); };
       return std::make_unique<PapiSource>(papi_library(), tool_runs);
     }},
    {"nic",
     [](Maker& maker) -> Made {
       return std::make_unique<NicSource>(NicPlace{maker.place.device, maker.place.ports}, read_ethtool);
     }},
    {"neo-host",
     [](Maker& maker) -> Made {
       const std::string address = maker.place.device.empty() ? "" : pci_address_of(maker.place.device);
       return std::make_unique<ToolSource>(neo_host_tool(address, maker.place.patience),
                                           std::make_unique<NeoHostFormat>(), "neo-host");
     },
     true},
    {"rdma-statistic",
     [](Maker& maker) -> Made { return std::make_unique<RdmaStatisticSource>(maker.place.device, maker.place.ports); },
     true},
    {"driver", [](Maker&) -> Made { return std::make_unique<DriverSource>(); }, true},
};

std::vector<std::string> usual_sources() {
  std::vector<std::string> usual;
  for (const Kind& kind : kKinds) {
    if (!kind.on_request) usual.emplace_back(kind.name);
  }
  return usual;
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
  if (text == "auto") return device ? usual_sources() : std::vector<std::string>{};
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

CountersNeeded counters_needed(const std::string& text, bool required, const std::string& node) {
  if (required) return CountersNeeded::all;
  return text == "auto" || text == "none" || node != "server" ? CountersNeeded::none : CountersNeeded::one;
}

std::vector<std::unique_ptr<CounterSource>> make_sources(const std::vector<std::string>& names,
                                                         const CounterPlace& place) {
  Maker maker{.place = place};
  std::vector<std::unique_ptr<CounterSource>> sources;
  for (const Kind& kind : kKinds) {
    if (std::ranges::count(names, kind.name) > 0) sources.push_back(kind.make(maker));
  }
  return sources;
}

}  // namespace verbscope
