#include "microbench/run/conductor.hpp"
#include "microbench/run/host_steps.hpp"
#include "microbench/run/host_window.hpp"

namespace verbscope {

namespace {

// A client whose windows make the rate says how far they are.
void tell_progress(Conductor& conductor, Channel& server, const Role& role, bool exact) {
  const auto tell = [&] {
    conductor.tell(server, "progress", Json{{"opened", role.windows_opened()}, {"closed", role.windows_closed()}});
  };
  conductor.wait_until("the first completion in the window", false, [&role] { return role.windows_opened(); });
  tell();
  if (!exact) return;
  conductor.each_second(tell);
  conductor.wait_until("--iters", false, [&role] { return role.windows_closed(); });
  conductor.each_second(nullptr);
  tell();
}

}  // namespace

void run_client_steps(const HostSide& side, Outcome& outcome) {
  Role& role = side.role;
  const Plan& plan = side.plan;
  Collector& collector = side.collector;
  Channel& server = side.peers.front();
  Conductor conductor(role, side.peers, side.cores, plan.schedule.timeout);
  collector.measure_background();
  conductor.tell(server, "ready", Json::object());
  conductor.await(server, "go");
  conductor.start();
  collector.attach(conductor.thread_ids());
  HostWindow window(role, collector);
  for (Phase phase = Phase::warmup; phase != Phase::stop;) {
    const Json body = conductor.await(server, "phase");
    const auto name = JsonFields(body, "message phase").require<std::string>("phase");
    const Phase said = name == "warmup" ? Phase::warmup : name == "measure" ? Phase::measure : Phase::stop;
    if (said == phase) continue;
    phase = said;
    if (phase == Phase::measure) {
      window.begin();
    } else {
      window.end();
    }
    conductor.turn(phase);
    if (phase == Phase::measure && role.counted()) {
      tell_progress(conductor, server, role, plan.schedule.iters.has_value());
    }
  }
  conductor.wait_until("the last completions", false, [&role] { return role.active_ended(); });
  conductor.tell(server, "sent", Json{{"messages", role.sent_to(0)}});
  const Json sent = conductor.await(server, "sent");
  Delivery delivery;
  delivery.expected = JsonFields(sent, "message sent").require<std::uint64_t>("messages");
  conductor.finish(delivery.expected);
  delivery = role.delivery(delivery.expected);
  outcome.result = role_result(role, window.time(), side.cores, outcome.failure);
  window.put_use(outcome.result);
  outcome.result.update(delivery_json(delivery, plan.operation.validate));
  Json report = outcome.result;
  report["checked"] = delivery.checked;
  report["wrong"] = delivery.wrong;
  conductor.tell(server, "result", report);
  conductor.await(server, "bye");
  judge_delivery(delivery, plan.operation, outcome.failure);
}

}  // namespace verbscope
