#include <deque>
#include <memory>
#include <vector>

#include "common/error.hpp"
#include "common/record.hpp"
#include "nic_sim/cluster.hpp"
#include "systems/service/runs.hpp"

namespace verbscope {

namespace {

// Messages among simulated processes, in memory. Peers are named by their nodes; the server is node 0.
class SimLinks final : public PeerLinks {
 public:
  SimLinks(std::deque<Management>& nodes, PeerId own) : nodes_(nodes), own_(own) {}
  PeerId connect(const std::string&) override { return 0; }
  void send(PeerId peer, const Message& message) override { nodes_[peer].received(own_, message); }

 private:
  std::deque<Management>& nodes_;
  PeerId own_;
};

}  // namespace

void run_simulated(Service& service, const ServiceOptions& options) {
  const std::size_t machines = options.clients + 1;
  SimCluster cluster(load_profile(options.fabric.substr(kSimulatedPrefix.size())), static_cast<int>(machines),
                     options.seed);
  std::uint32_t calling = options.clients * options.threads;
  std::deque<ServiceDevice> devices;
  std::deque<Management> management;
  std::deque<SimLinks> links;
  for (std::size_t n = 0; n < machines; ++n) {
    devices.emplace_back(cluster.provider(static_cast<int>(n)), options);
    management.emplace_back(options.threads);
    management.back().set_links(links.emplace_back(management, n));
  }
  std::deque<std::unique_ptr<ServiceThread>> threads;
  for (std::size_t n = 0; n < machines; ++n) {
    for (std::uint32_t t = 0; t < options.threads; ++t) {
      const ServicePlace place{devices[n], options, management[n], t, (options.seed << 8 | n) << 8 | t};
      std::unique_ptr<ServiceThread>& slot = threads.emplace_back();
      cluster.add_thread(static_cast<int>(n), static_cast<int>(t), [&, n, place](SimNode& node) {
        auto thread = std::make_unique<ServiceThreadOn<SimNode>>(place, node);
        ServiceThread& own = *thread;
        slot = std::move(thread);
        if (n == 0) return service.serve(own);
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
