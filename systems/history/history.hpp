// Histories: what the clients of a replicated store asked and were answered, with the times. Clients write them as JSON
// Lines, and `verbscope linearizable` reads them (docs/systems.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.hpp"
#include "common/json.hpp"
#include "common/units.hpp"

namespace verbscope {

enum class OperationKind { get, put };

// The value of a key before its first PUT, and of a GET that finds nothing.
inline constexpr std::uint64_t kNoValue = 0;

// One operation of a client. All times of a history are on one clock, such as host_history_time() of one machine or
// simulated time. `invoked` may be early and `completed` late; the reverse makes correct histories fail.
struct HistoryEvent {
  std::uint64_t client = 0;  // no two clients of a history have the same number
  std::uint64_t number = 0;  // of the operation, unique for its client
  OperationKind kind = OperationKind::get;
  std::uint64_t key = 0;
  std::uint64_t value = kNoValue;  // what a PUT writes, not kNoValue; what a completed GET returns
  Nanos invoked{};
  std::optional<Nanos> completed{};  // none: no answer. A PUT may take effect later, or never
};

// The clock of all processes of a machine: CLOCK_MONOTONIC.
Nanos host_history_time();

Json to_json(const HistoryEvent& event);
// Throws Error "where: ..." if `json` is no event.
HistoryEvent history_event(const Json& json, const std::string& where);

// Reads the files as one history. If a file has two lines of one operation, the later one counts: a client that may be
// killed writes a PUT before it is sent, and again when it completes. Ignores a last line without a line end, with a
// call of `warn`. Throws Error if a line is no event, or if two files have the same operation.
std::vector<HistoryEvent> read_histories(const std::vector<std::string>& paths,
                                         const std::function<void(const std::string& warning)>& warn);

// Writes a history. Each event is in the file when write() returns, also if the process is then killed.
class HistoryWriter {
 public:
  // Replaces `path`. `option`: the option that named it. Throws as check_output does, and Error.
  HistoryWriter(std::filesystem::path path, const std::string& option);
  void write(const HistoryEvent& event);

 private:
  std::string what_;
  Fd file_;
};

}  // namespace verbscope
