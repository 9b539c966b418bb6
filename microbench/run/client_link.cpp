#include <algorithm>

#include "common/error.hpp"
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
    const Json answer = server_.receive("endpoints", timeout);
    side_.node.connect(JsonFields(answer, "message endpoints").require<std::vector<Json>>("nodes"));
  }

  void gather() override {
    side_.collector.measure_background();
    threads_.send_to(server_, "ready", Json::object());
    threads_.await(server_, "go");
  }

  bool goes_on() override {
    await_phase_after(Phase::closed);
    if (server_phase_ != Phase::measure) return false;
    side_.node.threads().forget_intervals();
    return true;
  }
  bool wait(Step step) override {
    pass(step);
    return !stopped_early_;
  }

  PointReports collect(std::string& failure) override {
    PointReports reports{.own = own_report(failure), .clients = {}};
    NodeReport sent = reports.own;
    sent.delivery.crosses = true;
    threads_.send_to(server_, "result", fields_to_json(sent));
    threads_.await(server_, "bye");
    return reports;
  }

 private:
  void pass(Step step) {
    const NodeRun& node = side_.node;
    switch (step) {
      case Step::warm_up:
        return await_phase_after(Phase::warmup);
      case Step::open:
        return wait_own(Phase::measure, "the first completions in the interval");
      case Step::first_half:
        return await_phase_after(Phase::measure);
      case Step::halve:
        return wait_own(Phase::halved, "completions in the second half of the interval");
      case Step::second_half:
        if (!side_.plan.schedule.threads_end_it) return await_phase_after(Phase::halved);
        // The server takes the first message of the phase that it waits for: a sign of life must not repeat that phase.
        threads_.each_second([this] { send_progress(Phase::halved); });
        wait_own(Phase::closed, "--iters");
        threads_.each_second(nullptr);
        return await_phase_after(Phase::measure);
      case Step::close:
        return wait_own(Phase::closed, "the first completions after the interval");
      case Step::end:
        return threads_.wait_until("the last completions", false, [&node] { return node.threads().active_ended(); });
      case Step::drain: {
        threads_.send_to(server_, "sent", Json{{"messages", node.threads().sent_to(0)}});
        const Json sent = threads_.await(server_, "sent");
        expected_ = JsonFields(sent, "message sent").require<std::uint64_t>("messages");
        return threads_.await_messages(expected_);
      }
    }
  }

  // Waits until the server sends another phase than `now`, which it repeats as a sign of life. A stop before the
  // interval is closed means that the point has run out of time.
  void await_phase_after(Phase now) {
    while (server_phase_ == now) {
      const Json body = threads_.await(server_, "phase");
      const auto name = JsonFields(body, "message phase").require<std::string>("phase");
      const auto* const found = std::ranges::find(kPhaseNames, name);
      if (found == kPhaseNames.end()) fail("message phase: there is no phase \"{}\"", name);
      server_phase_ = static_cast<Phase>(found - kPhaseNames.begin());
    }
    stopped_early_ = server_phase_ == Phase::stop && now < Phase::closed;
    if (stopped_early_ && now == Phase::warmup) fail("the server stopped before it measured");
  }

  // If the threads here make the rate: waits until they have noted `phase`, and sends that to the server.
  void wait_own(Phase phase, const std::string& what) {
    if (!side_.node.counted()) return;
    wait_noted(phase, what, false);
    send_progress(Phase::closed);
    // The server then stops all nodes.
    if (steadiness_.gave_up()) await_phase_after(server_phase_);
  }

  // Sends the latest phase, up to `last`, that the threads here have noted.
  void send_progress(Phase last) {
    const NodeThreads& threads = side_.node.threads();
    Phase noted = last;
    while (noted != Phase::warmup && !threads.intervals_noted(noted)) {
      noted = static_cast<Phase>(static_cast<std::uint32_t>(noted) - 1);
    }
    const IntervalRates rates = noted == Phase::closed ? threads.interval_rates() : IntervalRates{};
    threads_.send_to(
        server_, "progress",
        Json{{"noted", to_string(noted)}, {"gave_up", steadiness_.gave_up()}, {"rates", fields_to_json(rates)}});
  }

  Channel& server_;
  Phase server_phase_ = Phase::warmup;
  bool stopped_early_ = false;
};

}  // namespace

std::unique_ptr<Link> make_client_link(const HostSide& side) {
  return std::make_unique<ClientLink>(side);
}

}  // namespace verbscope
