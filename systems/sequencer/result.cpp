#include "systems/sequencer/result.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "common/histogram.hpp"

namespace verbscope {

namespace {

constexpr double kNearBound = 0.85;     // share of the model's bound, or of the time, from which the resource limits
constexpr double kOftenBlocked = 0.02;  // share of the answers that waited for room in a send queue
constexpr double kOftenFull = 0.5;      // share of the workers' passes that found as much as a pass can take

// The account of a client or of all.
struct Account {
  std::uint64_t asked = 0, answers = 0, surplus = 0, retries = 0, repeated = 0, disordered = 0, fingerprint = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("asked", self.asked);
    visit("answers", self.answers);
    visit("surplus", self.surplus);
    visit("retries", self.retries);
    visit("repeated", self.repeated);
    visit("disordered", self.disordered);
    visit("fingerprint", self.fingerprint);
  }
};

Json client_json(const std::vector<const Receipts*>& all, const SequencerOptions& options) {
  Account sum;
  Histogram latency;
  std::uint64_t next = options.start_value;
  for (const Receipts* one : all) {
    const Account part{one->asked,    one->answers,    one->surplus,    one->retries,
                       one->repeated, one->disordered, one->fingerprint};
    std::vector<std::uint64_t> parts;
    Account::each(part, [&parts](const char*, std::uint64_t value) { parts.push_back(value); });
    std::size_t i = 0;
    Account::each(sum, [&](const char*, std::uint64_t& value) { value += parts[i++]; });
    latency.merge(one->latency);
    next = std::max(next, one->next);
  }
  Json values = Json::object();
  Account::each(sum, [&values](const char* name, std::uint64_t value) { values[name] = value; });
  Json out{{"values", values}, {"latency", latency.pack()}};
  out.update(latency.to_json());
  const std::uint64_t covered = next - options.start_value;
  if (!options.audit_shared && covered <= kPackedValues) out["bits"] = options.audit->pack(covered);
  return out;
}

// {length: how many lists}, as pairs.
Json lists_json(const std::vector<const WorkerCounts*>& workers) {
  BatchCounts sum;
  for (const WorkerCounts* worker : workers) {
    for (std::size_t n = 0; n < sum.lists.size(); ++n) sum.lists[n] += worker->batches.lists[n];
  }
  Json out = Json::array();
  for (std::size_t n = 0; n < sum.lists.size(); ++n) {
    if (sum.lists[n] > 0) out.push_back(Json::array({n, sum.lists[n]}));
  }
  return out;
}

// Mean and percentiles of the lists' lengths.
Json batch_json(const Json& lists) {
  std::uint64_t posts = 0, answers = 0;
  for (const Json& each : lists) {
    posts += each[1].get<std::uint64_t>();
    answers += each[0].get<std::uint64_t>() * each[1].get<std::uint64_t>();
  }
  if (posts == 0) return Json();
  const auto percentile = [&](std::uint64_t percent) {
    std::uint64_t seen = 0;
    for (const Json& each : lists) {
      seen += each[1].get<std::uint64_t>();
      if (seen * 100 >= posts * percent) return each[0].get<std::uint64_t>();
    }
    return std::uint64_t{0};
  };
  return Json{{"mean", static_cast<double>(answers) / static_cast<double>(posts)},
              {"p50", percentile(50)},
              {"p99", percentile(99)},
              {"max", lists.back()[0]},
              {"lists", lists}};
}

Json worker_json(const std::vector<const SequencerAccount*>& threads) {
  std::vector<const WorkerCounts*> counts;
  std::uint64_t passes = 0, empty = 0, full = 0, blocked = 0, answers = 0, corrections = 0;
  for (const SequencerAccount* thread : threads) {
    const WorkerCounts* one = thread->worker_counts();
    if (one == nullptr) continue;
    counts.push_back(one);
    passes += one->passes;
    empty += one->empty_passes;
    full += one->full_passes;
    blocked += one->blocked;
    answers += thread->answers();
    corrections += thread->corrections();
  }
  if (counts.empty()) return Json::object();
  const auto share = [passes](std::uint64_t part) {
    return passes == 0 ? 0 : static_cast<double>(part) / static_cast<double>(passes);
  };
  Json out{{"answers", answers},
           {"corrections", corrections},
           {"blocked", blocked},
           {"idle_share", share(empty)},
           {"full_share", share(full)}};
  return Json{{"workers", out}, {"answers_per_post", batch_json(lists_json(counts))}};
}

// Sums the clients' accounts, merges latencies and audits; the clients keep their percentiles.
Account merge_clients(Json& result, const SequencerOptions& options, Histogram& latency, std::uint64_t& twice,
                      bool& exact) {
  Account sum;
  for (Json& client : result.at("clients")) {
    Json& theirs = client.at("result");
    const std::string where = "result of " + client.at("node").get<std::string>();
    JsonFields values(theirs.at("values"), where + ": values");
    Account::each(sum,
                  [&values](const char* name, std::uint64_t& value) { value += values.require<std::uint64_t>(name); });
    latency.merge(Histogram::unpack(theirs.at("latency"), where + ": latency"));
    theirs.erase("latency");
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
std::string judge(const Account& sum, const Finding& found, const SequencerOptions& options) {
  if (sum.repeated + found.twice > 0) {
    return fmt::format("{} of {} values were received twice or never handed out", sum.repeated + found.twice,
                       found.received);
  }
  if (sum.disordered > 0) {
    return fmt::format("{} values are below one that their client had when it asked for them", sum.disordered);
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
  return forged ? "the values received are not those handed out" : "";
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

void judge_sequence(Outcome& outcome, const SequencerOptions& options) {
  Json& result = outcome.result;
  Histogram latency;
  Finding found;
  const Account sum = merge_clients(result, options, latency, found.twice, found.exact);
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
  if (outcome.failure.empty()) outcome.failure = judge(sum, found, options);
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
  std::string text =
      fmt::format("  latency: mean {:.2f} us, p50 {:.2f}, p99 {:.2f}\n", result.at("lat_mean_ns").get<double>() * 1e-3,
                  result.at("lat_p50_ns").get<double>() * 1e-3, result.at("lat_p99_ns").get<double>() * 1e-3);
  if (result.contains("answers_per_post") && result.at("answers_per_post").is_object()) {
    text += fmt::format(
        "  answers a post: mean {:.2f}, p50 {}, p99 {}; passes of the workers that found nothing: {:.0f} %\n",
        result.at("answers_per_post").at("mean").get<double>(),
        result.at("answers_per_post").at("p50").get<std::uint64_t>(),
        result.at("answers_per_post").at("p99").get<std::uint64_t>(),
        result.at("workers").at("idle_share").get<double>() * 100);
  }
  text += fmt::format(
      "  values: {} handed out, {} received, {} lost, {} repeated, {} out of order; {} requests sent again\n",
      values.at("handed_out").get<std::uint64_t>(), values.at("received").get<std::uint64_t>(),
      values.at("lost").get<std::uint64_t>(), values.at("repeated").get<std::uint64_t>(),
      values.at("disordered").get<std::uint64_t>(), values.at("retries").get<std::uint64_t>());
  return text + fmt::format("  bottleneck: {}\n", result.at("bottleneck").get<std::string>());
}

}  // namespace verbscope
