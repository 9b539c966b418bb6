#include "microbench/run/host_link.hpp"
#include "microbench/run/report_fields.hpp"

namespace verbscope {

namespace {

class ServerLink final : public HostLink {
 public:
  ServerLink(const HostSide& side, bool clients_may_leave) : HostLink(side) {
    if (clients_may_leave) conductor_.let_peers_leave();
  }

  void connect() override {
    if (side_.peers.empty()) return side_.node.connect_alone();
    const Picos timeout = side_.plan.schedule.timeout;
    std::vector<Json> theirs;
    for (Channel& peer : side_.peers) theirs.push_back(peer.receive("endpoints", timeout));
    for (Channel& peer : side_.peers) peer.send("endpoints", side_.node.endpoints(), timeout);
    side_.node.connect(theirs);
  }

  void gather() override {
    side_.collector.measure_background();
    for (Channel& peer : side_.peers) conductor_.hear(peer, "ready");
    for (Channel& peer : side_.peers) conductor_.tell(peer, "go", Json::object());
  }

  void start() override {
    if (no_warmup()) turn(Phase::measure);
    HostLink::start();
    conductor_.each_second([this] { tell_phase("warmup"); });
  }

  void turn_peers(Phase phase) override {
    tell_phase(phase == Phase::measure ? "measure" : "stop");
    if (phase == Phase::measure) conductor_.each_second([this] { tell_phase("measure"); });
  }

  void end_window() override {
    HostLink::end_window();
    conductor_.each_second(nullptr);
  }

  PointReports collect(std::string& failure) override {
    PointReports reports{.own = own_report(failure), .clients = {}};
    std::vector<NodeReport> clients;
    for (Channel& peer : side_.peers) {
      const std::optional<Json> result = conductor_.hear(peer, "result");
      if (!result) continue;
      clients.push_back(fields_from_json<NodeReport>(*result, "message result"));
      clients.back().node = fmt::format("client{}", peer.index());
    }
    if (conductor_.peers_left() > 0) reports.own.clients_gone = conductor_.peers_left();
    if (!side_.peers.empty()) reports.clients = std::move(clients);
    for (Channel& peer : side_.peers) conductor_.tell(peer, "bye", Json::object());
    return reports;
  }

 private:
  bool no_warmup() const { return side_.plan.schedule.warmup == Picos(0); }

  void tell_phase(const char* phase) {
    for (Channel& peer : side_.peers) conductor_.tell(peer, "phase", Json{{"phase", phase}});
  }

  void wait(Step step) override {
    const NodeRun& node = side_.node;
    const Schedule& schedule = side_.plan.schedule;
    switch (step) {
      case Step::warm_up:
        if (!no_warmup()) conductor_.wait_for(schedule.warmup, "the end of the warm-up");
        return;
      case Step::open:  // a thread that gets no core for a while must not miss the window
        if (!node.counted()) return await_progress("opened");
        return conductor_.wait_until("the first completion in the window", true,
                                     [&node] { return node.threads().windows_opened(); });
      case Step::measure:
        if (!schedule.iters) return conductor_.wait_for(schedule.duration, "the end of the measurement");
        if (!node.counted()) return await_progress("closed");
        return conductor_.wait_until("--iters", true, [&node] { return node.threads().windows_closed(); });
      case Step::close:
        return conductor_.wait_until("the first completion after the window", false,
                                     [&node] { return node.threads().windows_closed(); });
      case Step::end:
        return conductor_.wait_until("the last completions", false, [&node] { return node.threads().active_ended(); });
      case Step::drain:
        trade_sent();
        return conductor_.await_messages(expected_);
    }
  }

  // Until every client has said that all its windows are `opened` or `closed`.
  void await_progress(const std::string& what) {
    for (Channel& peer : side_.peers) {
      for (bool reached = false; !reached;) {
        const std::optional<Json> progress = conductor_.hear(peer, "progress");
        reached = !progress || JsonFields(*progress, "message progress").require<bool>(what);
      }
    }
  }

  void trade_sent() {
    for (std::size_t c = 0; c < side_.peers.size(); ++c) {
      Channel& peer = side_.peers[c];
      conductor_.tell(peer, "sent", Json{{"messages", side_.node.threads().sent_to(static_cast<std::uint32_t>(c))}});
      const std::optional<Json> sent = conductor_.hear(peer, "sent");
      if (sent) expected_ += JsonFields(*sent, "message sent").require<std::uint64_t>("messages");
    }
  }
};

}  // namespace

std::unique_ptr<Link> make_server_link(const HostSide& side, bool clients_may_leave) {
  return std::make_unique<ServerLink>(side, clients_may_leave);
}

}  // namespace verbscope
