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
    const Json told = server_.receive("endpoints", timeout);
    side_.node.connect(JsonFields(told, "message endpoints").require<std::vector<Json>>("nodes"));
  }

  void gather() override {
    side_.collector.measure_background();
    threads_.tell(server_, "ready", Json::object());
    threads_.await(server_, "go");
  }

  void turn_peers(Phase) override {}  // it is the server that turns them
  bool goes_on() override {
    await_phase_after(Phase::closed);
    if (said_ != Phase::measure) return false;
    side_.node.threads().forget_windows();
    return true;
  }
  bool gave_up() const override { return stopped_early_; }

  PointReports collect(std::string& failure) override {
    PointReports reports{.own = own_report(failure), .clients = {}};
    NodeReport told = reports.own;
    told.delivery.crosses = true;
    threads_.tell(server_, "result", fields_to_json(told));
    threads_.await(server_, "bye");
    return reports;
  }

 private:
  void wait(Step step) override {
    const NodeRun& node = side_.node;
    switch (step) {
      case Step::warm_up:
        return await_phase_after(Phase::warmup);
      case Step::open:
        return await_own(Phase::measure, "the first completions in the window");
      case Step::first_half:
        return await_phase_after(Phase::measure);
      case Step::halve:
        return await_own(Phase::halved, "completions in the second half of the window");
      case Step::second_half:
        if (!side_.plan.schedule.threads_end_it) return await_phase_after(Phase::halved);
        // The server takes the first message of the phase that it waits for: as a sign of life it must not come twice.
        threads_.each_second([this] { tell_progress(Phase::halved); });
        await_own(Phase::closed, "--iters");
        threads_.each_second(nullptr);
        return await_phase_after(Phase::measure);
      case Step::close:
        return await_own(Phase::closed, "the first completions after the window");
      case Step::end:
        return threads_.wait_until("the last completions", false, [&node] { return node.threads().active_ended(); });
      case Step::drain: {
        threads_.tell(server_, "sent", Json{{"messages", node.threads().sent_to(0)}});
        const Json sent = threads_.await(server_, "sent");
        expected_ = JsonFields(sent, "message sent").require<std::uint64_t>("messages");
        return threads_.await_messages(expected_);
      }
    }
  }

  // Until the server tells another phase than `now`, which it repeats as a sign of life. A stop that comes before the
  // window is closed says that the point had all the time that it may take.
  void await_phase_after(Phase now) {
    while (said_ == now) {
      const Json body = threads_.await(server_, "phase");
      const auto name = JsonFields(body, "message phase").require<std::string>("phase");
      const auto* const found = std::ranges::find(kPhaseNames, name);
      if (found == kPhaseNames.end()) fail("message phase: there is no phase \"{}\"", name);
      said_ = static_cast<Phase>(found - kPhaseNames.begin());
    }
    stopped_early_ = said_ == Phase::stop && now < Phase::closed;
  }

  // Where the windows here make the rate: until they have noted the turn to `phase`, which the server is waiting for.
  void await_own(Phase phase, const std::string& what) {
    if (!side_.node.counted()) return;
    await_noted(phase, what, false);
    tell_progress(Phase::closed);
    // The server then stops everybody.
    if (steadiness_.gave_up()) await_phase_after(said_);
  }

  // The latest phase up to `most` that the windows here have noted.
  void tell_progress(Phase most) {
    const NodeThreads& threads = side_.node.threads();
    Phase noted = most;
    while (noted != Phase::warmup && !threads.windows_noted(noted)) {
      noted = static_cast<Phase>(static_cast<std::uint32_t>(noted) - 1);
    }
    const WindowRates rates = noted == Phase::closed ? threads.window_rates() : WindowRates{};
    threads_.tell(
        server_, "progress",
        Json{{"noted", to_string(noted)}, {"gave_up", steadiness_.gave_up()}, {"rates", fields_to_json(rates)}});
  }

  Channel& server_;
  Phase said_ = Phase::warmup;  // by the server
  bool stopped_early_ = false;
};

}  // namespace

std::unique_ptr<Link> make_client_link(const HostSide& side) {
  return std::make_unique<ClientLink>(side);
}

}  // namespace verbscope
