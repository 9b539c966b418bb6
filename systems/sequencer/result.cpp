#include "systems/sequencer/result.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "common/histogram.hpp"
#include "common/members.hpp"
#include "microbench/run/console.hpp"
#include "pcie_model/predict.hpp"
#include "systems/requests/server.hpp"

namespace verbscope {

namespace {

constexpr double kNearBound = 0.85;     // share of the model's bound, or of the time, from which the resource limits
constexpr double kOftenBlocked = 0.02;  // share of the answers that waited for room in a send queue
constexpr double kOftenFull = 0.5;      // share of the workers' passes that found as much as a pass can take

Json client_json(const std::vector<const Receipts*>& all, const SequencerOptions& options) {
  ReceiptCounts sum;
  Histogram latency;
  std::uint64_t next = options.start_value;
  for (const Receipts* one : all) {
    add_weighted<ReceiptCounts>(sum, *one, std::uint64_t{1});
    latency.merge(one->latency);
    next = std::max(next, one->next);
  }
  Json values = Json::object();
  ReceiptCounts::each(sum, [&values](const char* name, std::uint64_t value) { values[name] = value; });
  Json out{{"values", values}, {"latency", latency.pack()}};
  out.update(latency.to_json());
  const std::uint64_t covered = next - options.start_value;
  if (!options.audit_shared && covered <= kPackedValues) out["bits"] = options.audit->pack(covered);
  return out;
}

Json worker_json(const std::vector<const SequencerAccount*>& threads) {
  PassCounts sum;
  bool some = false;
  std::uint64_t answers = 0, corrections = 0;
  for (const SequencerAccount* thread : threads) {
    const PassCounts* one = thread->worker_counts();
    if (one == nullptr) continue;
    some = true;
    sum.merge(*one);
    answers += thread->answers();
    corrections += thread->corrections();
  }
  if (!some) return Json::object();
  const auto share = [&sum](std::uint64_t part) {
    return sum.passes == 0 ? 0 : static_cast<double>(part) / static_cast<double>(sum.passes);
  };
  Json out{{"answers", answers},
           {"corrections", corrections},
           {"blocked", sum.blocked},
           {"idle_share", share(sum.empty_passes)},
           {"full_share", share(sum.full_passes)}};
  return Json{{"workers", out}, {"answers_per_post", sum.batches.to_json()}};
}

// Sums the clients' accounts and merges audits.
ReceiptCounts merge_clients(Json& result, const SequencerOptions& options, std::uint64_t& twice, bool& exact) {
  ReceiptCounts sum;
  for (Json& client : result.at("clients")) {
    Json& theirs = client.at("result");
    const std::string where = "result of " + client.at("node").get<std::string>();
    JsonFields values(theirs.at("values"), where + ": values");
    ReceiptCounts::each(
        sum, [&values](const char* name, std::uint64_t& value) { value += values.require<std::uint64_t>(name); });
    if (theirs.contains("bits")) {
      twice += options.audit->merge(theirs.at("bits").get<std::string>(), where + ": bits");
      theirs.erase("bits");
    } else {
      exact = exact && options.audit_shared;
    }
  }
  return sum;
}

struct Finding {
  std::uint64_t handed_out = 0, received = 0, distinct = 0, answered = 0, twice = 0;
  bool exact = true;
  bool clients_gone = false;  // what they received is not known
};

// One line about what is wrong; empty: nothing.
std::string check(const ReceiptCounts& sum, const Finding& found, const SequencerOptions& options) {
  if (sum.repeated + found.twice > 0) {
    return fmt::format("{} of {} values were received twice or never handed out", sum.repeated + found.twice,
                       found.received);
  }
  if (sum.disordered > 0) {
    return fmt::format("{} values are lower than a value that their client had before it asked", sum.disordered);
  }
  if (found.received > found.handed_out || (found.exact && found.distinct != found.received)) {
    return fmt::format("{} values were received, {} of them among the {} handed out", found.received, found.distinct,
                       found.handed_out);
  }
  const std::uint64_t missing = found.handed_out - found.received;
  if (options.design == SequencerDesign::atomic) {
    return missing > 0 && !found.clients_gone ? fmt::format("{} values are missing, on a reliable transport", missing)
                                              : "";
  }
  if (found.answered != found.handed_out) {
    return fmt::format("{} values were handed out in {} answers", found.handed_out, found.answered);
  }
  const bool forged = missing == 0 && sum.fingerprint != fingerprint_of_range(options.start_value, found.handed_out);
  return forged ? "the received values are not the values that were handed out" : "";
}

// An atomic holds the counter's lock for its round trip over PCIe. Only a simulated adapter tells for how long it was
// held; elsewhere a rate by itself does not show whether requests waited for it.
std::string bottleneck_of_atomics(const std::vector<CounterReport>& counters) {
  constexpr const char* kHeld = "atomic_slots_held_most_ps";
  if (counters.empty() || !counters.front().extra.contains(kHeld)) {
    return "PCIe round trip of an atomic, or too few requests outstanding";
  }
  const CounterReport& server = counters.front();
  const bool busy = to_seconds(Picos(server.extra.at(kHeld).get<std::int64_t>())) >= kNearBound * server.window_s;
  return busy ? "PCIe round trip of an atomic" : "too few requests outstanding";
}

std::string bottleneck(const Json& result, const Json& prediction) {
  const auto rate = result.at("rate_mops").get<double>();
  if (prediction.is_object() && rate >= kNearBound * prediction.at("bound_mops").get<double>()) {
    return prediction.at("binding").get<std::string>();
  }
  const Json& workers = result.at("workers");
  const auto answers = workers.at("answers").get<double>();
  if (workers.at("blocked").get<double>() > kOftenBlocked * answers) return "NIC: processing units of the UD QPs";
  return workers.at("full_share").get<double>() > kOftenFull ? "CPU of the workers" : "NIC, or too few clients";
}

}  // namespace

Json sequencer_node_json(const std::vector<const Workload*>& threads, const SequencerOptions& options) {
  std::vector<const SequencerAccount*> accounts;
  std::vector<const Receipts*> receipts;
  Json out = Json::object();
  for (const Workload* thread : threads) {
    const auto* account = dynamic_cast<const SequencerAccount*>(thread);
    if (account == nullptr) continue;
    accounts.push_back(account);
    if (account->receipts() != nullptr) receipts.push_back(account->receipts());
    if (account->counter() != nullptr) out["counter"] = *account->counter();
  }
  if (!receipts.empty()) return client_json(receipts, options);
  out.update(worker_json(accounts));
  return out;
}

void check_sequence(Outcome& outcome, const SequencerOptions& options) {
  Json& result = outcome.result;
  Finding found;
  const ReceiptCounts sum = merge_clients(result, options, found.twice, found.exact);
  const Histogram latency = take_client_histograms(result, "latency");
  found.handed_out = result.at("counter").get<std::uint64_t>() - options.start_value;
  found.received = sum.answers + sum.surplus;
  found.clients_gone = result.contains("clients_gone");
  if (found.handed_out > ValueAudit::kCapacity) {
    outcome.failure =
        fmt::format("{} values were handed out, more than can be checked ({}): choose a shorter --duration",
                    found.handed_out, ValueAudit::kCapacity);
    return;
  }
  found.distinct = options.audit->noted(found.handed_out);
  if (result.contains("workers")) found.answered = result.at("workers").at("answers").get<std::uint64_t>();
  if (outcome.failure.empty()) outcome.failure = check(sum, found, options);
  result.erase("counter");
  result["values"] =
      Json{{"first", options.start_value},
           {"handed_out", found.handed_out},
           {"received", found.received},
           {"lost", found.handed_out - std::min(found.handed_out, found.received)},
           {"asked", sum.asked},
           {"retries", sum.retries},
           {"surplus", sum.surplus},
           {"repeated", sum.repeated + found.twice},
           {"disordered", sum.disordered},
           {"checked", found.exact ? "each value" : "each value of a process, and the fingerprint of all"}};
  result.update(latency.to_json());
  result["bottleneck"] = options.design == SequencerDesign::atomic ? bottleneck_of_atomics(outcome.counters)
                                                                   : bottleneck(result, outcome.prediction);
}

std::string sequencer_text(const Json& result) {
  if (!result.contains("bottleneck")) return "";  // a client's result: the server knows
  const Json& values = result.at("values");
  std::string text = latency_line(result) + batches_line(result);
  if (result.contains("workers")) {
    text += fmt::format("  passes of the workers without a request: {:.0f} %\n",
                        result.at("workers").at("idle_share").get<double>() * 100);
  }
  text += fmt::format(
      "  values: {} handed out, {} received, {} lost, {} repeated, {} out of order; {} requests sent again\n",
      values.at("handed_out").get<std::uint64_t>(), values.at("received").get<std::uint64_t>(),
      values.at("lost").get<std::uint64_t>(), values.at("repeated").get<std::uint64_t>(),
      values.at("disordered").get<std::uint64_t>(), values.at("retries").get<std::uint64_t>());
  return text + fmt::format("  bottleneck: {}\n", result.at("bottleneck").get<std::string>());
}

// The model: what arrives at the server and what leaves, composed.
namespace {

constexpr Bytes kValue{8};

VerbShape request_shape(const Operation& op, int ports, const SequencerOptions& options) {
  VerbShape shape = verb_shape(op, ports);
  shape.payload = kValue;
  shape.header_only = options.design == SequencerDesign::spec;
  if (shape.header_only) {
    shape.payload = Bytes(0);
    shape.post_list = static_cast<int>(kRequestRecvList);
  }
  return shape;
}

// An answer in one of `lists`. A correction is a regular SEND in a design that sends none otherwise.
VerbShape answer_shape(const Operation& op, int ports, bool regular, const ListShare& lists) {
  VerbShape shape = verb_shape(op, ports);
  shape.verb = Verb::send;
  shape.transport = Transport::ud;
  shape.payload = regular ? kValue : Bytes(0);
  shape.header_only = !regular;
  shape.immediate = false;
  shape.inlined = regular;
  shape.post_list = lists.length;
  shape.post_step = lists.step;
  return shape;
}

}  // namespace

Prediction predict_sequencer(const ClusterWire& cluster, const Operation& op, int ports,
                             const SequencerOptions& options, const Json& result) {
  const VerbShape request = request_shape(op, ports, options);
  if (options.design == SequencerDesign::atomic) return predict_responder(cluster, request);
  const bool herd = options.design == SequencerDesign::herd;
  std::vector<PredictedPart> parts;
  Json batches;
  double corrected = 0;
  if (result.contains("answers_per_post") && result.at("answers_per_post").is_object()) {
    batches = result.at("answers_per_post");
    const Json& workers = result.at("workers");
    corrected = workers.at("corrections").get<double>() / workers.at("answers").get<double>();
  }
  for (const ListShare& lists : list_shares(batches, 1)) {
    VerbShape regular = answer_shape(op, ports, true, lists);
    regular.immediate = herd;
    parts.push_back({predict_requester(cluster, regular), herd ? lists.answers : lists.answers * corrected});
    if (!herd) {
      parts.push_back(
          {predict_requester(cluster, answer_shape(op, ports, false, lists)), lists.answers * (1 - corrected)});
    }
  }
  parts.push_back({herd ? predict_responder(cluster, request) : predict_receiver(cluster, request), 1});
  return predict_together("sequencer", parts);
}

}  // namespace verbscope
