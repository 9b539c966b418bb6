// The search of Wing and Gong ("Testing and Verifying Concurrent Objects", JPDC 1993) in the form of Lowe ("Testing for
// Linearizability", 2017): just in time, with equal configurations merged. It visits the invocations and returns of a
// key in the order of time. An operation takes effect only when a return requires it.
//
// Rules for a register keep the number of configurations small:
// - A GET takes effect as soon as the register has its value, because it changes nothing.
// - A PUT that nobody reads takes effect immediately before the next one that somebody reads. All PUTs that are
//   pending when another PUT takes effect are therefore "hidden": their returns require nothing.
// - Before the register gets another value, it gets the values of pending GETs. It always does if no later GET returns
//   the value, and never if a later GET does and only one PUT writes it. Otherwise both ways are searched.
// If all PUTs write different values, there is one configuration at any time.
#include "systems/history/linearizable.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "systems/history/violation.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxConfigurations = 1 << 16;  // some megabytes

// `optional`: the end of a PUT without an answer, when its value is not read any more. At equal times the order is that
// of the enumerators.
enum class StepKind { invocation, completion, optional };

struct Operation {
  const HistoryEvent* event;
  Nanos end_time;
  StepKind end;
  std::size_t invoked = 0;  // step
  bool is_put() const { return event->kind == OperationKind::put; }
  std::uint64_t value() const { return event->value; }
};

struct Step {
  Nanos time;
  StepKind kind;
  std::size_t operation;
};

// Who writes and reads a value of a key. Steps count from 1; 0: never.
struct ValueUse {
  std::size_t puts = 0;
  std::size_t last_invoked = 0, last_completed = 0;  // steps of GETs
};

// A state that some order of the operations has led to.
struct Configuration {
  std::uint64_t value = kNoValue;   // of the register
  std::vector<std::size_t> done{};  // pending operations that have taken effect, sorted
  std::size_t since = 0;            // step at which the register got its value

  bool has(std::size_t operation) const { return std::ranges::binary_search(done, operation); }
  void add(std::size_t operation) { done.insert(std::ranges::lower_bound(done, operation), operation); }
  void remove(std::size_t operation) {
    const auto at = std::ranges::lower_bound(done, operation);
    if (at != done.end() && *at == operation) done.erase(at);
  }
  // Of equal states the one whose value is the newest is first: it hides the most PUTs.
  bool operator<(const Configuration& other) const {
    return std::tie(value, done, other.since) < std::tie(other.value, other.done, since);
  }
  bool operator==(const Configuration& other) const { return value == other.value && done == other.done; }
};

class KeyCheck {
 public:
  explicit KeyCheck(std::span<const HistoryEvent* const> events) { prepare(events); }

  // The first GET that fits into no order; null: there is an order.
  const HistoryEvent* failing_get() {
    for (now_ = 1; now_ <= steps_.size(); ++now_) {
      const Step& step = steps_[now_ - 1];
      if (step.kind == StepKind::invocation) {
        invoke(step.operation);
        continue;
      }
      if (!complete(step)) return operations_[step.operation].event;
    }
    return nullptr;
  }

 private:
  void prepare(std::span<const HistoryEvent* const> events) {
    std::unordered_map<std::uint64_t, Nanos> last_read;
    for (const HistoryEvent* const event : events) {
      if (event->kind != OperationKind::get || !event->completed) continue;
      Nanos& last = last_read.try_emplace(event->value, *event->completed).first->second;
      last = std::max(last, *event->completed);
    }
    for (const HistoryEvent* const event : events) {
      if (event->completed) {
        operations_.push_back({event, *event->completed, StepKind::completion});
      } else if (event->kind == OperationKind::put) {  // a GET without an answer says nothing
        const auto last = last_read.find(event->value);
        const bool is_read = last != last_read.end() && last->second >= event->invoked;
        if (is_read) operations_.push_back({event, last->second, StepKind::optional});
      }
    }
    std::ranges::sort(operations_, {}, [](const Operation& each) { return std::pair(each.end_time, each.end); });
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      steps_.push_back({operations_[i].event->invoked, StepKind::invocation, i});
      steps_.push_back({operations_[i].end_time, operations_[i].end, i});
    }
    std::ranges::stable_sort(steps_, {}, [](const Step& each) { return std::pair(each.time, each.kind); });
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Operation& operation = operations_[steps_[i].operation];
      const bool begins = steps_[i].kind == StepKind::invocation;
      if (begins) operation.invoked = i + 1;
      ValueUse& use = uses_[operation.value()];
      if (operation.is_put()) {
        use.puts += begins;
      } else {
        (begins ? use.last_invoked : use.last_completed) = i + 1;
      }
    }
  }

  void invoke(std::size_t index) {
    pending_.insert(std::ranges::lower_bound(pending_, index), index);
    const Operation& operation = operations_[index];
    if (operation.is_put()) return;
    for (Configuration& each : configurations_) {
      if (each.value == operation.value()) each.add(index);
    }
  }

  // Keeps the configurations in which the operation has taken effect, and adds those that follow when it does now.
  // Returns false if there are none.
  bool complete(const Step& step) {
    const Operation& operation = operations_[step.operation];
    const bool read_later = uses_[operation.value()].last_completed > now_;
    std::vector<Configuration> next;
    for (Configuration& each : configurations_) {
      const bool is_done = each.has(step.operation);
      const bool hidden = operation.is_put() && each.since > operation.invoked;
      if (!is_done && step.kind == StepKind::completion && (!hidden || read_later))
        extend(each, operation.value(), next);
      if (is_done || step.kind == StepKind::optional || hidden) next.push_back(std::move(each));
    }
    std::erase(pending_, step.operation);
    for (Configuration& each : next) each.remove(step.operation);
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    configurations_ = std::move(next);
    return !configurations_.empty();
  }

  // Adds to `next` all configurations that follow from `from` when the register gets this value now, directly or after
  // other values.
  void extend(const Configuration& from, std::uint64_t value, std::vector<Configuration>& next) const {
    std::set<Configuration> seen;
    std::vector<Configuration> todo{from};
    while (!todo.empty()) {
      Configuration current = std::move(todo.back());
      todo.pop_back();
      for (const std::size_t get : pending_) {
        if (waits(current, get, value) && last_chance(get)) write(current, operations_[get].value());
      }
      if (!seen.insert(current).second) continue;
      if (next.size() + seen.size() > kMaxConfigurations) {
        fail("key {}: PUTs of equal values allow more than {} orders at a time", operations_[0].event->key,
             kMaxConfigurations);
      }
      for (const std::size_t get : pending_) {
        const std::uint64_t other = operations_[get].value();
        if (!waits(current, get, value) || last_chance(get) || uses_.at(other).puts == 1) continue;
        Configuration after = current;
        if (write(after, other)) todo.push_back(std::move(after));
      }
      if (write(current, value)) next.push_back(std::move(current));
    }
  }

  // True for a GET that needs another value than this one.
  bool waits(const Configuration& current, std::size_t get, std::uint64_t value) const {
    return !operations_[get].is_put() && operations_[get].value() != value && !current.has(get);
  }
  // True if all GETs of the same value are pending or complete.
  bool last_chance(std::size_t get) const { return uses_.at(operations_[get].value()).last_invoked < now_; }

  // Lets a pending PUT of this value take effect, and all pending GETs of it. Returns false if there is no such PUT. Of
  // several, the one that ends first is the best, because all others are hidden now.
  bool write(Configuration& current, std::uint64_t value) const {
    const auto put = std::ranges::find_if(pending_, [&](std::size_t each) {
      return operations_[each].is_put() && operations_[each].value() == value && !current.has(each);
    });
    if (put == pending_.end()) return false;
    current.value = value;
    current.since = now_;
    current.add(*put);
    for (const std::size_t get : pending_) {
      if (!operations_[get].is_put() && operations_[get].value() == value && !current.has(get)) current.add(get);
    }
    return true;
  }

  std::vector<Operation> operations_;  // in the order of their ends
  std::vector<Step> steps_;
  std::unordered_map<std::uint64_t, ValueUse> uses_;
  std::vector<std::size_t> pending_;  // sorted
  std::vector<Configuration> configurations_{{}};
  std::size_t now_ = 0;  // the step, from 1
};

}  // namespace

HistoryCheck check_linearizable(std::span<const HistoryEvent> events) {
  HistoryCheck check;
  std::set<std::uint64_t> clients;
  std::vector<const HistoryEvent*> by_key;
  for (const HistoryEvent& event : events) {
    clients.insert(event.client);
    by_key.push_back(&event);
    ++(event.kind == OperationKind::get ? check.gets : check.puts);
    check.unknown += !event.completed;
  }
  check.clients = clients.size();
  std::ranges::stable_sort(by_key, {}, &HistoryEvent::key);
  for (auto begin = by_key.begin(); begin != by_key.end(); ++check.keys) {
    const auto end = std::ranges::upper_bound(begin, by_key.end(), (*begin)->key, {}, &HistoryEvent::key);
    const std::span<const HistoryEvent* const> same_key(begin, end);
    if (const HistoryEvent* const get = KeyCheck(same_key).failing_get()) {
      check.violations.push_back(describe_violation(same_key, *get));
    }
    begin = end;
  }
  return check;
}

}  // namespace verbscope
