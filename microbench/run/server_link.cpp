#include <algorithm>
#include <cstdio>

#include "common/terminal.hpp"
#include "microbench/run/host_link.hpp"
#include "microbench/run/report_fields.hpp"

namespace verbscope {

namespace {

class ServerLink final : public HostLink {
 public:
  explicit ServerLink(const HostSide& side) : HostLink(side) {
    if (side.plan.topology.clients_may_leave) threads_.allow_peers_to_leave();
  }

  void connect() override {
    if (side_.peers.empty()) return side_.node.connect_alone();
    const Picos timeout = side_.plan.schedule.timeout;
    std::vector<Json> nodes{side_.node.endpoints()};
    for (Channel& peer : side_.peers) nodes.push_back(peer.receive("endpoints", timeout));
    const bool pairs = side_.plan.topology.qps_per_pair > 0;
    const Json answer{{"nodes", pairs ? Json(nodes) : Json::array({nodes.front()})}};
    for (Channel& peer : side_.peers) peer.send("endpoints", answer, timeout);
    side_.node.connect(nodes);
  }

  void gather() override {
    side_.collector.measure_background();
    for (Channel& peer : side_.peers) threads_.receive_from(peer, "ready");
    for (Channel& peer : side_.peers) threads_.send_to(peer, "go", Json::object());
  }

  void start() override {
    if (no_warmup()) threads_.turn(Phase::measure);
    HostLink::start();
    threads_.each_second([this] { send_phase(Phase::warmup); });
  }

  void turn(Phase phase) override {
    HostLink::turn(phase);
    send_phase(phase);
    if (phase == Phase::stop) return threads_.each_second(nullptr);
    threads_.each_second([this, phase] { send_phase(phase); });
  }

  bool wait(Step step) override {
    pass(step);
    return !steadiness_.gave_up();
  }

  bool goes_on() override {
    IntervalRates rates;
    if (side_.node.counted()) rates += side_.node.threads().interval_rates();
    if (side_.node.peers_count()) rates += rates_of_peers_;
    if (side_.plan.schedule.forever) {
      print_text(stdout, side_.node.interval_line(rates, ""));
      side_.node.threads().forget_intervals();
      return true;
    }
    const bool again = steadiness_.goes_on(rates, std::nullopt, true, time());
    if (again) side_.node.threads().forget_intervals();
    return again;
  }

  PointReports collect(std::string& failure) override {
    if (failure.empty() && side_.node.failure().empty()) failure = steadiness_.failure(side_.node.why_missing());
    PointReports reports{.own = own_report(failure), .clients = {}};
    if (!side_.plan.schedule.threads_end_it) reports.own.steadiness = steadiness_.report();
    std::vector<NodeReport> clients;
    for (Channel& peer : side_.peers) {
      const std::optional<Json> result = threads_.receive_from(peer, "result");
      if (!result) continue;
      clients.push_back(fields_from_json<NodeReport>(*result, "message result"));
      clients.back().node = fmt::format("client{}", peer.index());
    }
    if (threads_.peers_gone() > 0) reports.own.clients_gone = threads_.peers_gone();
    if (!side_.peers.empty()) reports.clients = std::move(clients);
    for (Channel& peer : side_.peers) threads_.send_to(peer, "bye", Json::object());
    return reports;
  }

 private:
  bool no_warmup() const { return side_.plan.schedule.warmup == Picos(0); }

  void send_phase(Phase phase) {
    for (Channel& peer : side_.peers) threads_.send_to(peer, "phase", Json{{"phase", to_string(phase)}});
  }

  void pass(Step step) {
    const NodeRun& node = side_.node;
    const Schedule& schedule = side_.plan.schedule;
    switch (step) {
      case Step::warm_up:
        if (!no_warmup()) threads_.wait_for(schedule.warmup, "the end of the warm-up");
        return;
      case Step::open:  // a thread that gets no core for a while must not miss the interval
        return wait_all_noted(Phase::measure, "the first completions in the interval");
      case Step::first_half:
        return threads_.wait_for(steadiness_.duration() / 2, "the middle of the measurement");
      case Step::halve:
        return wait_all_noted(Phase::halved, "completions in the second half of the interval");
      case Step::second_half:
        if (schedule.threads_end_it) return wait_all_noted(Phase::closed, "--iters");
        return threads_.wait_for(steadiness_.duration() / 2, "the end of the measurement");
      case Step::close:
        return wait_all_noted(Phase::closed, "the first completions after the interval");
      case Step::end:
        return threads_.wait_until("the last completions", false, [&node] { return node.threads().active_ended(); });
      case Step::drain:
        exchange_sent_counts();
        return threads_.await_messages(expected_);
    }
  }

  // Waits until the threads that make the rate have noted `phase`, here or at every client. If one client gives up, the
  // messages of the others are still read: their progress must not be taken for a later message.
  void wait_all_noted(Phase phase, const std::string& what) {
    if (side_.node.counted()) wait_noted(phase, what, !side_.node.peers_count());
    if (!side_.node.peers_count()) return;
    rates_of_peers_ = {};
    bool gave_up = false;
    for (Channel& peer : side_.peers) {
      for (bool reached = false; !reached;) {
        const std::optional<Json> progress = threads_.receive_from(peer, "progress");
        if (!progress) break;
        JsonFields fields(*progress, "message progress");
        if (fields.require<bool>("gave_up")) {
          gave_up = true;
          break;
        }
        const auto noted = fields.require<std::string>("noted");
        reached = std::ranges::find(kPhaseNames, noted) - kPhaseNames.begin() >= static_cast<std::ptrdiff_t>(phase);
        if (!reached || phase != Phase::closed) continue;
        rates_of_peers_ += fields_from_json<IntervalRates>(fields.at("rates"), "message progress: rates");
      }
    }
    if (gave_up) steadiness_.give_up();
  }

  void exchange_sent_counts() {
    for (std::size_t c = 0; c < side_.peers.size(); ++c) {
      Channel& peer = side_.peers[c];
      threads_.send_to(peer, "sent", Json{{"messages", side_.node.threads().sent_to(static_cast<std::uint32_t>(c))}});
      const std::optional<Json> sent = threads_.receive_from(peer, "sent");
      if (sent) expected_ += JsonFields(*sent, "message sent").require<std::uint64_t>("messages");
    }
  }

  IntervalRates rates_of_peers_;
};

}  // namespace

std::unique_ptr<Link> make_server_link(const HostSide& side) {
  return std::make_unique<ServerLink>(side);
}

}  // namespace verbscope
