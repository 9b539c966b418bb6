#include "systems/history/history.hpp"

#include <fcntl.h>

#include <chrono>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "common/lines.hpp"
#include "common/terminal.hpp"

namespace verbscope {

namespace {

constexpr const char* kKindNames[] = {"get", "put"};

const char* name_of(OperationKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

OperationKind kind_named(std::string_view text) {
  for (const OperationKind kind : {OperationKind::get, OperationKind::put}) {
    if (text == name_of(kind)) return kind;
  }
  fail("expected \"get\" or \"put\", got \"{}\"", text);
}

// The events of several files, each operation once.
class Merge {
 public:
  void add(const HistoryEvent& event, std::size_t file, const std::string& where) {
    const auto [found, is_new] = places_.try_emplace({event.client, event.number}, file, events.size());
    if (is_new) {
      events.push_back(event);
      return;
    }
    const auto [first_file, index] = found->second;
    HistoryEvent& earlier = events[index];
    if (first_file != file) {
      fail("{}: another file has operation {} of client {} too", where, event.number, event.client);
    }
    const bool put = event.kind == OperationKind::put;
    if (earlier.kind != event.kind || earlier.key != event.key || (put && earlier.value != event.value)) {
      fail("{}: operation {} of client {} differs from an earlier line", where, event.number, event.client);
    }
    earlier = event;
  }

  std::vector<HistoryEvent> events;

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::size_t, std::size_t>> places_;  // file, index
};

}  // namespace

Nanos host_history_time() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

Json to_json(const HistoryEvent& event) {
  return {{"client", event.client},
          {"operation", event.number},
          {"kind", name_of(event.kind)},
          {"key", event.key},
          {"value", event.value},
          {"invoked_ns", event.invoked.count()},
          {"completed_ns", event.completed ? Json(event.completed->count()) : Json(nullptr)}};
}

HistoryEvent history_event(const Json& json, const std::string& where) {
  constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();
  JsonFields fields(json, where);
  HistoryEvent event;
  event.client = fields.require<std::uint64_t>("client");
  event.number = fields.require<std::uint64_t>("operation");
  event.kind = fields.parse("kind", kind_named);
  event.key = fields.require<std::uint64_t>("key");
  event.value = fields.require<std::uint64_t>("value");
  event.invoked = Nanos(fields.require<std::int64_t>("invoked_ns", 0, kLatest));
  if (!fields.at("completed_ns").is_null()) {
    event.completed = Nanos(fields.require<std::int64_t>("completed_ns", event.invoked.count(), kLatest));
  }
  fields.reject_unknown();
  if (event.kind == OperationKind::put && event.value == kNoValue) {
    fields.fail_key("value", "expected a number of at least 1 for a PUT, got 0");
  }
  return event;
}

std::vector<HistoryEvent> read_histories(const std::vector<std::string>& paths,
                                         const std::function<void(const std::string& warning)>& warn) {
  Merge merge;
  for (std::size_t file = 0; file < paths.size(); ++file) {
    const std::string& path = paths[file];
    for (Lines lines(path, fmt::format("cannot read a history from {}", path)); lines.next();) {
      const std::string where = fmt::format("{}:{}", path, lines.number());
      if (lines.too_long()) fail("{}: the line is longer than {} bytes", where, kMaxJsonBytes);
      if (!lines.ended()) {
        warn(fmt::format("{}: ignored a last line without a line end", where));
      } else if (!lines.line().empty()) {
        merge.add(history_event(parse_json_text(lines.line(), path, lines.number()), where), file, where);
      }
    }
  }
  return std::move(merge.events);
}

HistoryWriter::HistoryWriter(std::filesystem::path path, const std::string& option)
    : what_(fmt::format("cannot write a history to {}", path.string())) {
  check_output(option, path, FileKind::history);
  file_ = Fd(check(what_, ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)));
}

void HistoryWriter::write(const HistoryEvent& event) {
  write_all(file_.get(), dump_json(to_json(event)) + "\n", what_);
}

}  // namespace verbscope
