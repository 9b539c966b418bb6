#include "systems/service/sim_links.hpp"

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "common/text.hpp"
#include "exchange/tcp.hpp"

namespace verbscope {

SimLinks::SimLinks(SimCluster& cluster, const std::vector<std::string>& servers, Picos timeout)
    : cluster_(cluster), servers_(servers), timeout_(timeout) {
  for (int machine = 0; machine < cluster.nodes(); ++machine) {
    machines_.emplace_back().links = std::make_unique<Own>(*this, static_cast<std::size_t>(machine));
  }
}

void SimLinks::begin(std::size_t machine, Management& process) {
  process.set_links(*machines_[machine].links);
  machines_[machine].process = &process;
  for (const PeerId number : connections_of(machine)) go_on(number);
}

void SimLinks::end(std::size_t machine) {
  machines_[machine].process = nullptr;
  for (const PeerId number : connections_of(machine)) {
    Connection& connection = connections_.at(number);
    for (std::size_t end = 0; end < 2; ++end) {
      if (connection.machines[end] == machine) connection.ends[end] = nullptr;
    }
    if (!connection.made && connection.ends[0] == nullptr) {
      connections_.erase(number);
    } else {
      go_on(number);
    }
  }
}

void SimLinks::cut(std::size_t machine) {
  machines_[machine].cut = true;
  for (const PeerId number : connections_of(machine)) {
    Connection& connection = connections_.at(number);
    if (!connection.made || connection.silent_since) continue;
    connection.silent_since = cluster_.now();
    cluster_.at(cluster_.now() + kPeerSilence, [this, number, since = cluster_.now()] {
      const auto found = connections_.find(number);
      if (found != connections_.end() && found->second.silent_since == since) lose(number, "does not respond");
    });
  }
}

void SimLinks::join(std::size_t machine) {
  machines_[machine].cut = false;
  for (const PeerId number : connections_of(machine)) go_on(number);
}

PeerId SimLinks::connect(std::size_t machine, const std::string& address) {
  const auto found = std::ranges::find(servers_, address);
  if (found == servers_.end()) fail("{}: expected {}", address, or_list(servers_));
  const PeerId number = next_++;
  connections_[number] = {.machines = {machine, static_cast<std::size_t>(found - servers_.begin())},
                          .ends = {machines_[machine].process, nullptr}};
  go_on(number);
  if (!connections_.at(number).made) {
    cluster_.at(cluster_.now() + timeout_, [this, number] {
      const auto waiting = connections_.find(number);
      if (waiting == connections_.end() || waiting->second.made) return;
      lose(number, fmt::format("accepts no connection, waited {:g} s", to_seconds(timeout_)));
    });
  }
  return number * 2;
}

void SimLinks::send(PeerId peer, const Message& message) {
  const auto found = connections_.find(peer / 2);
  if (found == connections_.end()) return;
  found->second.waiting.push_back({peer % 2, message});
  go_on(found->first);
}

// Makes the connection, delivers its messages, or reports its end, unless a cable is cut.
void SimLinks::go_on(PeerId number) {
  Connection& connection = connections_.at(number);
  const auto& [from, to] = connection.machines;
  if (machines_[from].cut || machines_[to].cut) return;
  if (!connection.made) {
    connection.ends[1] = machines_[to].process;
    if (connection.ends[1] == nullptr) return;
    connection.made = true;
  } else if (connection.ends[0] == nullptr || connection.ends[1] == nullptr) {
    return lose(number, "has closed the connection");
  }
  connection.silent_since.reset();
  while (!connection.waiting.empty()) {
    const Waiting next = std::move(connection.waiting.front());
    connection.waiting.pop_front();
    const std::size_t end = 1 - next.sender;
    connection.ends[end]->received(number * 2 + end, next.message);
  }
}

// Reports the end of a connection to the ends that are left.
void SimLinks::lose(PeerId number, const std::string& reason) {
  const Connection connection = std::move(connections_.at(number));
  connections_.erase(number);
  for (std::size_t end = 0; end < 2; ++end) {
    if (connection.ends[end] == nullptr) continue;
    connection.ends[end]->lost(number * 2 + end, fmt::format("node{} {}", connection.machines[1 - end], reason));
  }
}

std::vector<PeerId> SimLinks::connections_of(std::size_t machine) const {
  std::vector<PeerId> numbers;
  for (const auto& [number, connection] : connections_) {
    if (std::ranges::find(connection.machines, machine) != connection.machines.end()) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace verbscope
