#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/record.hpp"
#include "nic_sim/cluster.hpp"
#include "systems/service/runs.hpp"

namespace verbscope {

namespace {

// Messages among simulated processes, in memory. Peers are named by their machines.
class SimLinks final : public PeerLinks {
 public:
  SimLinks(std::deque<Management>& nodes, const std::vector<std::string>& servers, PeerId own)
      : nodes_(nodes), servers_(servers), own_(own) {}
  PeerId connect(const std::string& address) override {
    const auto found = std::ranges::find(servers_, address);
    if (found == servers_.end())
      fail("{}: expected one of {} servers, the first is {}", address, servers_.size(), servers_.front());
    return static_cast<PeerId>(found - servers_.begin());
  }
  void send(PeerId peer, const Message& message) override { nodes_[peer].received(own_, message); }

 private:
  std::deque<Management>& nodes_;
  const std::vector<std::string>& servers_;
  PeerId own_;
};

}  // namespace

void run_simulated(Service& service, ServiceOptions options) {
  const std::uint32_t servers = service.servers();
  const std::size_t machines = servers + options.clients;
  for (std::uint32_t n = 0; n < servers; ++n) options.servers.push_back(fmt::format("node{}", n));
  SimCluster cluster(load_profile(options.fabric.substr(kSimulatedPrefix.size())), static_cast<int>(machines),
                     options.seed);
  std::uint32_t calling = options.clients * options.threads;
  std::deque<ServiceDevice> devices;
  std::deque<Management> management;
  std::deque<SimLinks> links;
  for (std::size_t n = 0; n < machines; ++n) {
    devices.emplace_back(cluster.provider(static_cast<int>(n)), options);
    management.emplace_back(options.threads);
    management.back().set_links(links.emplace_back(management, options.servers, n));
  }
  std::deque<std::unique_ptr<ServiceThread>> threads;
  for (std::size_t n = 0; n < machines; ++n) {
    for (std::uint32_t t = 0; t < options.threads; ++t) {
      const std::uint64_t random = mix(mix(mix(options.seed) ^ n) ^ t);
      const ServicePlace place{devices[n], options, management[n], static_cast<std::uint32_t>(n), t, random};
      std::unique_ptr<ServiceThread>& slot = threads.emplace_back();
      cluster.add_thread(static_cast<int>(n), static_cast<int>(t), [&, n, place](SimNode& node) {
        auto thread = std::make_unique<ServiceThreadOn<SimNode>>(place, node);
        ServiceThread& own = *thread;
        slot = std::move(thread);
        if (n < servers) return service.serve(own);
        service.call(own);
        own.finish();
        if (--calling > 0) return;
        for (Management& each : management) each.stop();
      });
    }
  }
  cluster.run();
}

}  // namespace verbscope
