// Inbound SEND and RECV: the clients send, the server's threads receive. The rate is that of the messages that arrive.
#include "common/error.hpp"
#include "microbench/bench/all_sizes.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/run/runner.hpp"

namespace verbscope {

namespace {

class RecvRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"recv_rate", "Rate of inbound SENDs over RC, UC or UD, measured where they are received.",
            "-c UD -s 32 -I 32 --threads 4"};
  }

  void options(OptionTable& table) override {
    table.flag("--srq", shared_, "one shared receive queue a thread, of --rx_depth, instead of one a QP");
    table.integer("--recv_list", recv_list_, 1u, 1u << 20,
                  "RECVs in one ibv_post_recv (default 32, half of a shallow queue)");
    add_all_sizes(table, all_);
  }

  void adjust(Options& options) override {
    const std::uint32_t depth = options.rx_depth.value_or(kUsualRxDepth);
    if (recv_list_ && *recv_list_ > depth) {
      fail_usage("--recv_list {} is more than the receive queue holds (--rx_depth {})", *recv_list_, depth);
    }
  }

  std::vector<std::uint32_t> points(const Options& options) const override {
    return all_ ? all_sizes(options) : std::vector<std::uint32_t>();
  }

  Traffic traffic() const override {
    Traffic traffic;
    traffic.driver = Side::client;
    traffic.recv_list = recv_list_.value_or(0);
    traffic.shared_recv_queue = shared_;
    traffic.label = "SEND in";
    return traffic;
  }

  QueueNeeds needs(const Operation& operation, Side side) const override {
    return side == Side::server ? receiver_needs(operation) : sender_needs(operation);
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::server ? make_receiver(setup) : make_sender(setup);
  }

  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override {
    return predict_listed_receiver(cluster, operation, ports);
  }

 private:
  bool shared_ = false;
  bool all_ = false;
  std::optional<std::uint32_t> recv_list_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::RecvRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
