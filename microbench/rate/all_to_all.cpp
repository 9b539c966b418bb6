// Every machine posts to every other. A thread has QPs to the thread of the same number of each other machine, uses
// them at random, and limits its outstanding READs or WRITEs over all of them. After rc-swarm of rdma_bench (Kalia et
// al., USENIX ATC 2016).
#include "common/error.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/loop/datagrams.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/rate/one_sided.hpp"
#include "microbench/run/machine_rates.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

namespace {

class AllToAll final : public OneSided {
 public:
  AllToAll() : OneSided(Verb::read) {
    both_sides_ = random_turns_ = cq_per_qp_ = true;
    addresses_ = Addresses::random;
    wait_ = WaitFor::oldest;
    outstanding_ = 16;
    region_size_ = 2 << 20;
  }

  Description describe() const override {
    return {"all_to_all", "Rate of READs, WRITEs or datagrams that every machine posts to every other machine.",
            "--machines 4 --verb read -s 256"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.restate("--threads", 1, "threads of each machine, each pinned to a core");
    add_verb(table, true);
    offer_transports(table, {Verb::read, Verb::write, Verb::send});
    table.integer("--machines", machines_, 2u, 1u << 10, "number of machines: one server, the others clients");
    table.integer("--vms", vms_, 1u, 1u << 12, "QPs of each thread to each other machine");
    table.integer("--window", outstanding_, 1u, 1u << 20,
                  "outstanding operations per thread, completed in order; not for WRITEs with --cq_mod above 1");
    add_seen_by(table);
    add_region(table, "size of each thread's memory region for its peers");
  }

  void adjust(Options& options) override {
    if (verb_ == Verb::send) adjust_datagrams(options);
    if (table_->given("--qp")) fail_usage("--qp {}: give --vms instead, the number of QPs to each machine", options.qp);
    const std::uint32_t clients = machines_ - 1;
    if (options.clients && *options.clients != clients) {
      fail_usage("--clients {}: leave it out, --machines {} sets it to {}", *options.clients, machines_, clients);
    }
    if (options.client_threads && *options.client_threads != options.threads) {
      fail_usage("--client_threads {}: every machine has --threads {}; leave out --client_threads",
                 *options.client_threads, options.threads);
    }
    options.clients = clients;
    options.client_threads = region_shares_ = options.threads;
    if (!options.cq_mod) options.cq_mod = 1;
    if (verb_ == Verb::write && *options.cq_mod > 1) {
      if (table_->given("--window")) {
        fail_usage("--window {}: not for WRITEs with --cq_mod {}, which alone limits the outstanding ones",
                   outstanding_, *options.cq_mod);
      }
      outstanding_ = 0;
      by_cq_mod_ = true;
    }
    if (by_cq_mod_ && options.events) fail_usage("--events: not with one completion queue per QP");
    OneSided::adjust(options);
  }

  Plan draft() const override {
    Plan plan = OneSided::draft();
    plan.topology.qps_per_pair = vms_;
    Operation& op = plan.operation;
    op.label = fmt::format("{} among all", verb_ == Verb::read ? "READ" : verb_ == Verb::write ? "WRITE" : "SEND");
    if (verb_ == Verb::send) {
      op.counted = driver_;
      op.cq_per_qp = false;
    }
    return plan;
  }

  QueueNeeds needs(const Operation& op, Side side) const override {
    return verb_ == Verb::send ? datagram_needs_both_ways(op) : OneSided::needs(op, side);
  }
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return verb_ == Verb::send ? make_datagram_exchange(setup) : OneSided::setup(setup);
  }
  // Counts sent datagrams: a receiver without a RECV drops some.
  std::optional<OperationCount> operation_count() const override {
    return verb_ == Verb::send ? std::optional(OperationCount{Side::server, "messages_sent"})
                               : OneSided::operation_count();
  }

  // Machines may have different rates; the model bounds their mean.
  std::string bounded_rate() const override { return kMachineRate; }

  void finish(Outcome& outcome) const override { add_machine_rates(outcome); }
  std::string report(const Json& result) const override { return machine_rates_line(result); }

  // A machine is the target of one operation for each that it posts.
  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    const VerbShape shape = verb_shape(op, ports);
    if (verb_ == Verb::send) {
      return predict_together("sender and receiver",
                              {{predict_requester(cluster, shape)}, {predict_listed_receiver(cluster, op, ports)}});
    }
    return predict_together("requester and responder",
                            {{predict_requester(cluster, shape)}, {predict_responder(cluster, shape)}});
  }

 private:
  void adjust_datagrams(Options& o) {
    if (o.connection != Transport::ud) {
      fail_usage("--verb send: expected --connection UD, where one QP reaches all machines, got {}",
                 to_string(o.connection));
    }
    for (const char* option : {"--window", "--seen_by", "--region_size", "--addresses", "--alignment", "--pages"}) {
      if (table_->given(option)) fail_usage("{}: not with --verb send", option);
    }
    if (o.post_list > 1) fail_usage("--post_list {}: expected 1 with --verb send", o.post_list);
    if (o.validate) fail_usage("--validate: not with --verb send");
    wait_ = WaitFor::any;
    outstanding_ = 0;
    cq_per_qp_ = false;
  }

  OptionTable* table_ = nullptr;
  std::uint32_t machines_ = 2;
  std::uint32_t vms_ = 1;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::AllToAll>(argc, argv);
}
