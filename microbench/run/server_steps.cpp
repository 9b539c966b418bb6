#include "microbench/run/conductor.hpp"
#include "microbench/run/host_steps.hpp"
#include "microbench/run/host_window.hpp"

namespace verbscope {

namespace {

class ServerRun {
 public:
  ServerRun(const HostSide& side, bool clients_may_leave)
      : role_(side.role),
        plan_(side.plan),
        peers_(side.peers),
        cores_(side.cores),
        collector_(side.collector),
        conductor_(side.role, side.peers, side.cores, side.plan.schedule.timeout) {
    if (clients_may_leave) conductor_.let_peers_leave();
  }

  void run(Outcome& outcome) {
    collector_.measure_background();
    for (Channel& peer : peers_) conductor_.hear(peer, "ready");
    for (Channel& peer : peers_) conductor_.tell(peer, "go", Json::object());
    measure(outcome);
    drain(outcome);
    for (Channel& peer : peers_) conductor_.tell(peer, "bye", Json::object());
  }

 private:
  void tell_phase(const char* phase) {
    for (Channel& peer : peers_) conductor_.tell(peer, "phase", Json{{"phase", phase}});
  }

  void measure(Outcome& outcome) {
    const bool no_warmup = plan_.schedule.warmup == Picos(0);
    if (no_warmup) conductor_.turn(Phase::measure);
    conductor_.start();
    collector_.attach(conductor_.thread_ids());
    conductor_.each_second([this] { tell_phase("warmup"); });
    if (!no_warmup) conductor_.wait_for(plan_.schedule.warmup, "the end of the warm-up");
    HostWindow window(role_, collector_);
    window.begin();
    conductor_.turn(Phase::measure);
    tell_phase("measure");
    conductor_.each_second([this] { tell_phase("measure"); });
    wait_for_window();
    window.end();
    conductor_.each_second(nullptr);
    // Receivers see their window's end in traffic that still flows, so those that send to them are stopped afterwards.
    const bool receives = role_.counted() && !role_.sends();
    conductor_.turn(Phase::stop);
    if (!receives) tell_phase("stop");
    conductor_.wait_until("the first completion after the window", false, [this] { return role_.windows_closed(); });
    if (receives) tell_phase("stop");
    conductor_.wait_until("the last completions", false, [this] { return role_.active_ended(); });
    outcome.result = role_result(role_, window.time(), cores_, outcome.failure);
    window.put_use(outcome.result);
  }

  void wait_for_window() {
    // A thread that gets no core for a while must not miss the window.
    if (role_.counted()) {
      conductor_.wait_until("the first completion in the window", true, [this] { return role_.windows_opened(); });
    } else {
      for (Channel& peer : peers_) await_progress(peer, "opened");
    }
    if (!plan_.schedule.iters) {
      conductor_.wait_for(plan_.schedule.duration, "the end of the measurement");
    } else if (role_.counted()) {
      conductor_.wait_until("--iters", true, [this] { return role_.windows_closed(); });
    } else {
      for (Channel& peer : peers_) await_progress(peer, "closed");
    }
  }

  void await_progress(Channel& peer, const std::string& what) {
    for (bool reached = false; !reached;) {
      const std::optional<Json> progress = conductor_.hear(peer, "progress");
      reached = !progress || JsonFields(*progress, "message progress").require<bool>(what);
    }
  }

  void drain(Outcome& outcome) {
    Delivery delivery;
    for (std::size_t c = 0; c < peers_.size(); ++c) {
      conductor_.tell(peers_[c], "sent", Json{{"messages", role_.sent_to(static_cast<std::uint32_t>(c))}});
      const std::optional<Json> sent = conductor_.hear(peers_[c], "sent");
      if (sent) delivery.expected += JsonFields(*sent, "message sent").require<std::uint64_t>("messages");
    }
    conductor_.finish(delivery.expected);
    delivery = role_.delivery(delivery.expected);
    outcome.result.update(role_.results());  // of threads that were only worked on, and look now
    Json clients = Json::array();
    for (Channel& peer : peers_) {
      const std::optional<Json> result = conductor_.hear(peer, "result");
      if (!result) continue;
      JsonFields fields(*result, "message result");
      delivery +=
          {fields.require<std::uint64_t>("messages_expected"), fields.require<std::uint64_t>("messages_received"),
           fields.require<std::uint64_t>("checked"), fields.require<std::uint64_t>("wrong")};
      clients.push_back(Json{{"node", fmt::format("client{}", peer.index())}, {"result", *result}});
    }
    if (conductor_.peers_left() > 0) outcome.result["clients_gone"] = conductor_.peers_left();
    if (!peers_.empty()) {
      outcome.result.update(delivery_json(delivery, plan_.operation.validate));
      outcome.result["clients"] = clients;
      if (!role_.counted()) take_rate_of_clients(outcome.result, plan_.schedule.iters.has_value());
    }
    judge_delivery(delivery, plan_.operation, outcome.failure);
  }

  Role& role_;
  const Plan& plan_;
  std::vector<Channel>& peers_;
  const std::vector<int>& cores_;
  Collector& collector_;
  Conductor conductor_;
};

}  // namespace

void run_server_steps(const HostSide& side, bool clients_may_leave, Outcome& outcome) {
  ServerRun(side, clients_may_leave).run(outcome);
}

}  // namespace verbscope
