// The TCP connections among the processes of a simulated cluster. Messages arrive at once. Connections break as on
// hosts: those of a process that ends at once, those of a machine with cut cables when it has been silent for
// kPeerSilence.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic_sim/cluster.hpp"
#include "systems/service/management.hpp"

namespace verbscope {

class SimLinks {
 public:
  // `servers`: the names of the first machines, which listen. `timeout`: of attempts to connect. The cluster and the
  // names must outlive this.
  SimLinks(SimCluster& cluster, const std::vector<std::string>& servers, Picos timeout);

  // The process of a machine begins, and uses its links from now on. `process` must stay until end().
  void begin(std::size_t machine, Management& process);
  // It ends.
  void end(std::size_t machine);
  void cut(std::size_t machine);
  void join(std::size_t machine);

 private:
  // Of one process.
  class Own final : public PeerLinks {
   public:
    Own(SimLinks& all, std::size_t machine) : all_(all), machine_(machine) {}
    PeerId connect(const std::string& address) override { return all_.connect(machine_, address); }
    void send(PeerId peer, const Message& message) override { all_.send(peer, message); }

   private:
    SimLinks& all_;
    std::size_t machine_;
  };
  struct Machine {
    Management* process = nullptr;  // null: it does not run
    std::unique_ptr<Own> links;
    bool cut = false;
  };
  struct Waiting {
    std::size_t sender;  // the end
    Message message;
  };
  // End 0 connects, end 1 listens. The PeerId of an end is twice the connection's number, plus the end.
  struct Connection {
    std::array<std::size_t, 2> machines{};
    std::array<Management*, 2> ends{};  // null: it has not accepted yet, or its process has ended
    bool made = false;
    std::optional<Picos> silent_since{};  // it is made, and a cable is cut
    std::deque<Waiting> waiting{};
  };

  PeerId connect(std::size_t machine, const std::string& address);
  void send(PeerId peer, const Message& message);
  void go_on(PeerId number);
  void lose(PeerId number, const std::string& reason);
  std::vector<PeerId> connections_of(std::size_t machine) const;

  SimCluster& cluster_;
  const std::vector<std::string>& servers_;
  std::vector<Machine> machines_;
  Picos timeout_;
  PeerId next_ = 1;
  std::map<PeerId, Connection> connections_;  // by number
};

}  // namespace verbscope
