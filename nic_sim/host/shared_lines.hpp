// Cache lines that several threads of one node change. An atomic instruction first waits for earlier stores, including
// those to the NIC, and then for the line. The line serves one core at a time and must be transferred if another core
// changed it last.
#pragma once

#include <algorithm>
#include <vector>

#include "nic_sim/host/thread.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

class SharedLines {
 public:
  explicit SharedLines(const HostProfile& host) : own_(host.atomic_add), transfer_(host.line_transfer) {}

  // `thread` changes the word at `address` by an atomic instruction. The change happens when this returns.
  void change(const void* address, SimThread& thread) {
    thread.spend(own_);
    thread.sync();
    Line& line = line_of(address);
    const Picos begin = std::max(thread.clock(), line.free_at);
    const Picos cost = line.owner == &thread ? Picos(0) : transfer_;
    line.free_at = begin + cost;
    line.busy += cost;
    line.owner = &thread;
    thread.stall_until(begin);
    thread.spend(cost);
  }

  // The time that each line has been transferred so far.
  std::vector<Picos> busy() const {
    std::vector<Picos> times;
    for (const Line& line : lines_) times.push_back(line.busy);
    return times;
  }

 private:
  struct Line {
    const void* address;
    const SimThread* owner;
    Picos free_at;
    Picos busy;
  };
  Line& line_of(const void* address) {
    const auto found = std::ranges::find(lines_, address, &Line::address);
    return found != lines_.end() ? *found : lines_.emplace_back(Line{address, nullptr, Picos(0), Picos(0)});
  }

  Picos own_;
  Picos transfer_;
  std::vector<Line> lines_;
};

}  // namespace verbscope::sim
