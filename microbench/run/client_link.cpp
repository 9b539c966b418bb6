#include "microbench/run/host_link.hpp"
#include "microbench/run/report_fields.hpp"

namespace verbscope {

namespace {

class ClientLink final : public HostLink {
 public:
  explicit ClientLink(const HostSide& side) : HostLink(side), server_(side.peers.front()) {}

  void connect() override {
    const Picos timeout = side_.plan.schedule.timeout;
    server_.send("endpoints", side_.node.endpoints(), timeout);
    side_.node.connect({server_.receive("endpoints", timeout)});
  }

  void gather() override {
    side_.collector.measure_background();
    conductor_.tell(server_, "ready", Json::object());
    conductor_.await(server_, "go");
  }

  void turn_peers(Phase) override {}  // it is the server that turns them

  PointReports collect(std::string& failure) override {
    PointReports reports{.own = own_report(failure), .clients = {}};
    NodeReport told = reports.own;
    told.delivery.crosses = true;
    conductor_.tell(server_, "result", fields_to_json(told));
    conductor_.await(server_, "bye");
    return reports;
  }

 private:
  void wait(Step step) override {
    const NodeRun& node = side_.node;
    switch (step) {
      case Step::warm_up:
        return await_phase_after("warmup");
      case Step::open:
        if (node.counted()) await_opened();
        return;
      case Step::measure:
        if (node.counted() && side_.plan.schedule.iters) await_iters();
        return await_phase_after("measure");
      case Step::close:  // it has nothing to say before its last completions
        return;
      case Step::end:
        return conductor_.wait_until("the last completions", false, [&node] { return node.threads().active_ended(); });
      case Step::drain: {
        conductor_.tell(server_, "sent", Json{{"messages", node.threads().sent_to(0)}});
        const Json sent = conductor_.await(server_, "sent");
        expected_ = JsonFields(sent, "message sent").require<std::uint64_t>("messages");
        return conductor_.await_messages(expected_);
      }
    }
  }

  // Until the server tells another phase than `now`, which it repeats as a sign of life.
  void await_phase_after(const std::string& now) {
    std::string said = now;
    while (said == now) {
      const Json body = conductor_.await(server_, "phase");
      said = JsonFields(body, "message phase").require<std::string>("phase");
    }
  }

  void tell_progress() {
    const NodeRun& node = side_.node;
    conductor_.tell(server_, "progress",
                    Json{{"opened", node.threads().windows_opened()}, {"closed", node.threads().windows_closed()}});
  }

  void await_opened() {
    conductor_.wait_until("the first completion in the window", false,
                          [this] { return side_.node.threads().windows_opened(); });
    tell_progress();
  }

  void await_iters() {
    conductor_.each_second([this] { tell_progress(); });
    conductor_.wait_until("--iters", false, [this] { return side_.node.threads().windows_closed(); });
    conductor_.each_second(nullptr);
    tell_progress();
  }

  Channel& server_;
};

}  // namespace

std::unique_ptr<Link> make_client_link(const HostSide& side) {
  return std::make_unique<ClientLink>(side);
}

}  // namespace verbscope
