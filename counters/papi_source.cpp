#include "counters/papi_source.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr int kMaxBoxes = 128;

// Events of a thread, each with the names that PAPI may have for it. The first one that the machine has is used.
struct ThreadEvent {
  const char* column;
  std::vector<std::string> names;
};
const std::vector<ThreadEvent>& thread_events() {
  static const std::vector<ThreadEvent> events{{"cycles", {"PAPI_TOT_CYC", "perf::CYCLES"}},
                                               {"instructions", {"PAPI_TOT_INS", "perf::INSTRUCTIONS"}},
                                               {"llc_misses", {"PAPI_L3_TCM", "perf::CACHE-MISSES"}}};
  return events;
}

}  // namespace

// Names: libpfm4. A CBo box has a single opcode filter, so its opcodes take turns (Intel, Xeon E5 v3 uncore guide).
// DATA_REQ_OF_CPU counts 4-byte units on two counters of an IIO box, so eight events take four turns (Intel, Xeon
// Scalable uncore guide). CHA boxes from Ice Lake on filter within the event.
const std::vector<UncoreEvents>& uncore_events() {
  static const std::vector<UncoreEvents> families{
      {"Haswell-EP",
       "hswep_unc_cbo{}",
       {{"UNC_C_TOR_INSERTS:OPCODE:OPC_PCIRDCUR", "PCIRdCur"},
        {"UNC_C_TOR_INSERTS:OPCODE:OPC_ITOM", "ItoM"},
        {"UNC_C_TOR_INSERTS:OPCODE:OPC_WIL", "WiL"}},
       1,
       3,
       {{"dma_read_lines", {"PCIRdCur"}}, {"dma_write_full_lines", {"ItoM"}}, {"mmio_doorbells", {"WiL"}}},
       "partial DMA writes; whether an MMIO write is a doorbell or a write-combined line"},
      {"Skylake, Cascade Lake",
       "skx_unc_iio{}",
       {{"UNC_IO_DATA_REQ_OF_CPU:MEM_READ_PART0", "DMA read bytes"},
        {"UNC_IO_DATA_REQ_OF_CPU:MEM_READ_PART1", "DMA read bytes"},
        {"UNC_IO_DATA_REQ_OF_CPU:MEM_READ_PART2", "DMA read bytes"},
        {"UNC_IO_DATA_REQ_OF_CPU:MEM_READ_PART3", "DMA read bytes"},
        {"UNC_IO_DATA_REQ_OF_CPU:MEM_WRITE_PART0", "DMA write bytes"},
        {"UNC_IO_DATA_REQ_OF_CPU:MEM_WRITE_PART1", "DMA write bytes"},
        {"UNC_IO_DATA_REQ_OF_CPU:MEM_WRITE_PART2", "DMA write bytes"},
        {"UNC_IO_DATA_REQ_OF_CPU:MEM_WRITE_PART3", "DMA write bytes"}},
       4,
       4,
       {{"payload_bytes_to_nic", {"DMA read bytes"}}, {"payload_bytes_to_host", {"DMA write bytes"}}},
       "MMIO (payload_bytes_to_nic is that of DMA reads only); lines"},
      {"Ice Lake",
       "icx_unc_cha{}",
       {{"UNC_CHA_TOR_INSERTS:IO_PCIRDCUR", "PCIRdCur"},
        {"UNC_CHA_TOR_INSERTS:IO_ITOM", "ItoM"},
        {"UNC_CHA_TOR_INSERTS:IO_ITOMCACHENEAR", "ItoMCacheNear"}},
       1,
       1,
       {{"dma_read_lines", {"PCIRdCur"}},
        {"dma_write_full_lines", {"ItoM"}},
        {"dma_write_partial_lines", {"ItoMCacheNear"}}},
       "MMIO"}};
  return families;
}

std::vector<int> one_core_per_socket(const std::string& sys) {
  std::map<int, int> core_of;  // socket -> its first core
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(sys + "/devices/system/cpu", ignored)) {
    const std::string name = entry.path().filename().string();
    int socket = 0;
    if (!name.starts_with("cpu") || name.find_first_not_of("0123456789", 3) != name.npos || name.size() == 3) continue;
    if (!(std::ifstream(entry.path() / "topology/physical_package_id") >> socket)) continue;
    const int core = std::stoi(name.substr(3));
    const auto [found, is_new] = core_of.try_emplace(socket, core);
    if (!is_new) found->second = std::min(found->second, core);
  }
  std::vector<int> cores;
  for (const auto& [socket, core] : core_of) cores.push_back(core);
  return cores;
}

PapiSource::PapiSource(PapiLibrary& library, std::function<bool()> uncore_taken, std::vector<int> sockets)
    : library_(library), uncore_taken_(std::move(uncore_taken)), sockets_(std::move(sockets)) {}

PapiSource::~PapiSource() {
  for (const auto* sets : {&threads_, &uncore_}) {
    for (const Set& set : *sets) library_.close(set.id);
  }
  library_.forget_thread();
}

void PapiSource::start() {
  try {
    library_.close(open_thread(gettid()).id);  // a library that fails for this thread fails for all threads
  } catch (const Error& error) {
    no_threads_ = error.what();
  }
  try {
    if (uncore_taken_()) fail("the PCM tool that is running uses the uncore counters");
    start_uncore();
  } catch (const Error& error) {
    no_uncore_ = error.what();
  }
  if (!no_threads_.empty() && family_ == nullptr) fail("PAPI: {}; uncore: {}", no_threads_, no_uncore_);
}

// Uses only events with counters of their own, because PAPI does not report by how much it scales multiplexed events.
PapiSource::Set PapiSource::open_thread(int thread) {
  Set set{library_.open("perf_event", thread, false), 1, {}};
  std::string first_reason;
  absent_.clear();
  try {
    for (const ThreadEvent& event : thread_events()) {
      PapiAdd result = PapiAdd::absent;
      std::string reason;
      for (std::size_t i = 0; i < event.names.size() && result == PapiAdd::absent; ++i) {
        result = library_.add(set.id, event.names[i], reason);
        if (first_reason.empty()) first_reason = reason;
      }
      if (result == PapiAdd::added) {
        set.columns.emplace_back(event.column);
      } else {
        absent_.push_back(fmt::format("{} ({})", event.column, reason));
      }
    }
    if (set.columns.empty()) throw Error(first_reason);
    library_.start(set.id);
  } catch (const Error&) {
    library_.close(set.id);
    throw;
  }
  return set;
}

void PapiSource::attach(const std::vector<int>& threads) {
  if (!no_threads_.empty()) return;
  for (const int thread : threads) threads_.push_back(open_thread(thread));
}

// Adds the boxes of one kind on the socket of `core`. Returns false if the CPU has none.
bool PapiSource::add_boxes(const UncoreEvents& events, int core, Set& set) {
  for (int box = 0; box < kMaxBoxes; ++box) {
    for (const auto& [event, column] : events.columns) {
      const std::string name = fmt::format("{}::{}:cpu={}", fmt::format(fmt::runtime(events.box), box), event, core);
      std::string reason;
      if (library_.add(set.id, name, reason) == PapiAdd::added) {
        set.columns.push_back(column);
      } else if (event == events.columns.front().first) {
        return box > 0;  // all boxes were added
      } else {
        throw Error(reason);
      }
    }
  }
  return true;
}

void PapiSource::start_uncore() {
  for (const UncoreEvents& events : uncore_events()) {
    for (const int core : sockets_) {
      Set set{library_.open("perf_event_uncore", std::nullopt, events.turns > 1), events.unit, {}};
      try {
        if (!add_boxes(events, core, set)) {
          library_.close(set.id);
          break;
        }
        library_.start(set.id);
      } catch (const Error&) {
        library_.close(set.id);
        throw;
      }
      uncore_.push_back(set);
      family_ = &events;
    }
    if (family_ != nullptr) return;
  }
  fail("no PCIe events are known for this CPU");
}

Sums PapiSource::snapshot() {
  Sums values;
  const auto take = [&](const Set& set, const std::string& prefix) {
    const std::vector<long long> read = library_.read(set.id);
    for (std::size_t i = 0; i < set.columns.size(); ++i) {
      const std::uint64_t value = static_cast<std::uint64_t>(std::max(0ll, read.at(i))) * set.unit;
      values[set.columns[i]] += value;
      if (!prefix.empty()) values[prefix + set.columns[i]] = value;
    }
  };
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    take(threads_[t], threads_.size() > 1 ? fmt::format("thread{}/", t) : "");
  }
  for (const Set& set : uncore_) take(set, "");
  return values;
}

CounterReport PapiSource::report(double ops_per_s) {
  std::vector<std::string> unseen;
  if (!no_threads_.empty()) unseen.push_back(fmt::format("what the threads cost ({})", no_threads_));
  if (no_threads_.empty()) unseen.emplace_back("what the kernel costs");
  unseen.insert(unseen.end(), absent_.begin(), absent_.end());
  if (family_ == nullptr) unseen.push_back(fmt::format("PCIe ({})", no_uncore_));
  if (family_ != nullptr) unseen.push_back("which device it was; " + family_->blind);
  const Counted all = counted();
  CounterReport report = make_report(name(), fmt::format("{}", fmt::join(unseen, "; ")), all,
                                     family_ == nullptr ? std::vector<EventRule>{} : family_->rules);
  if (ops_per_s > 0 && all.window_s > 0) {
    Json per_op = Json::object();
    for (const ThreadEvent& event : thread_events()) {
      const auto found = all.raw.find(event.column);
      if (found != all.raw.end()) per_op[event.column] = found->second / (ops_per_s * all.window_s);
    }
    report.extra["per_op"] = per_op;
  }
  if (family_ != nullptr) report.extra["uncore_scaling"] = family_->turns;
  return report;
}

}  // namespace verbscope
