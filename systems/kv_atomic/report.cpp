#include "systems/kv_atomic/report.hpp"

#include <array>

#include "common/text.hpp"
#include "systems/kv_atomic/ends.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kSlotBits = 12;  // low bits of an address, taken to choose the slot: see distinct_lock_slots

struct Key {
  const char* name;
  std::uint64_t KvCounts::*count;
};
// These counts are summed over threads, then over clients.
constexpr std::array<Key, 12> kCounted = {{{"gets", &KvCounts::gets},
                                           {"puts", &KvCounts::puts},
                                           {"get_ops", &KvCounts::window_gets},
                                           {"put_ops", &KvCounts::window_puts},
                                           {"lock_look_ops", &KvCounts::window_looks},
                                           {"torn_read_ops", &KvCounts::window_torn},
                                           {"lock_retries", &KvCounts::lock_retries},
                                           {"torn_reads", &KvCounts::torn_reads},
                                           {"reads_given_up", &KvCounts::given_up},
                                           {"tickets_skipped", &KvCounts::skipped},
                                           {"turns_lost", &KvCounts::turns_lost},
                                           {"violations", &KvCounts::wrong}}};
constexpr std::array<const char*, 2> kRates = {"get_mops", "put_mops"};
constexpr std::array<const char*, 2> kKinds = {"get", "put"};

std::string histogram_key(const std::string& kind) {
  return kind + "_lat_packed";
}

Json server_results(const KvServer& server) {
  return Json{{"records_locked", server.locked()},
              {"records_inconsistent", server.inconsistent()},
              {"puts_in_records", server.puts()},
              {"lock_slots",
               {{"assumed", 1u << kSlotBits},
                {"assumed_address_bits", Json::array({0, kSlotBits - 1})},
                {"reached", server.lock_slots(kSlotBits)}}}};
}

// The records must show what all clients did. Where some were lost or the run ended early (`cut_short`), locks may
// still be taken, and PUTs done that were never told.
std::string disagreement(const Json& result, bool cut_short) {
  const auto count = [&result](const char* key) { return result.value(key, 0ull); };
  if (count("violations") > 0) {
    return fmt::format("{} GETs read bytes that no client wrote for their key, or PUTs lost a lock that they held",
                       count("violations"));
  }
  if (count("records_inconsistent") > 0) {
    return fmt::format("{} records do not hold the value of their last PUT", count("records_inconsistent"));
  }
  if (cut_short) return "";
  if (count("records_locked") > 0) return fmt::format("{} records are still locked", count("records_locked"));
  if (count("puts_in_records") != count("puts")) {
    return fmt::format("the records count {} PUTs, the clients completed {}", count("puts_in_records"), count("puts"));
  }
  if (count("tickets_skipped") + count("reads_given_up") > 0) {
    return fmt::format("{} tickets were skipped and {} GETs given up after the --lease, although no client was lost",
                       count("tickets_skipped"), count("reads_given_up"));
  }
  return "";
}

void add_slot_waits(Outcome& outcome) {
  for (const char* key : {"atomic_slot_waits_per_op", "atomic_slot_wait_ns_per_op"}) outcome.result[key] = Json();
  const double ops = outcome.result.value("window_ops", 0.0);
  if (outcome.counters.empty() || ops <= 0) return;
  const Json& extra = outcome.counters.front().extra;
  if (!extra.contains("atomic_slot_waits")) return;
  outcome.result["atomic_slot_waits_per_op"] = extra.value("atomic_slot_waits", 0.0) / ops;
  outcome.result["atomic_slot_wait_ns_per_op"] = extra.value("atomic_slot_wait_ps", 0.0) / 1e3 / ops;
}

}  // namespace

Json kv_results(const std::vector<const Workload*>& threads) {
  KvCounts sums;
  std::array<Histogram, 2> latency;
  std::array<double, 2> mops{};
  for (const Workload* thread : threads) {
    if (const auto* server = dynamic_cast<const KvServer*>(thread)) {
      if (server->holds_records()) return server_results(*server);
      continue;
    }
    const auto& client = dynamic_cast<const KvClient&>(*thread);
    const KvState& state = client.state();
    for (const Key& key : kCounted) sums.*key.count += state.counts.*key.count;
    latency[0].merge(state.get_latency);
    latency[1].merge(state.put_latency);
    if (client.window() <= Picos(0)) continue;
    mops[0] += to_mops(Ops(state.counts.window_gets), client.window());
    mops[1] += to_mops(Ops(state.counts.window_puts), client.window());
  }
  Json json = Json::object();
  for (const Key& key : kCounted) json[key.name] = sums.*key.count;
  for (std::size_t i = 0; i < 2; ++i) {
    json[kRates[i]] = mops[i];
    json.update(latency[i].to_json(std::string(kKinds[i]) + "_lat"));
    json[histogram_key(kKinds[i])] = latency[i].pack();
  }
  return json;
}

std::optional<KvMix> kv_mix(const Json& result) {
  const auto sum = [&result](const char* key) { return sum_over_clients(result, key); };
  const double gets = sum("get_ops"), puts = sum("put_ops"), all = gets + puts;
  if (all <= 0) return std::nullopt;
  return KvMix{.gets = (gets + sum("torn_read_ops")) / all, .puts = puts / all, .looks = sum("lock_look_ops") / all};
}

void kv_finish(Outcome& outcome) {
  Json& result = outcome.result;
  for (const Key& key : kCounted) result[key.name] = static_cast<std::uint64_t>(sum_over_clients(result, key.name));
  for (const char* rate : kRates) result[rate] = 0.0;
  for (Json& client : result.at("clients")) {
    JsonFields fields(client.at("result"), "result of " + client.value("node", ""));
    for (const char* rate : kRates) result[rate] = result.value(rate, 0.0) + fields.require<double>(rate);
  }
  for (const std::string kind : kKinds) {
    result.update(take_client_histograms(result, histogram_key(kind)).to_json(kind + "_lat"));
  }
  const double puts = result.value("puts", 0.0);
  result["lock_retries_per_put"] = puts > 0 ? Json(result.value("lock_retries", 0.0) / puts) : Json();
  add_slot_waits(outcome);
  const std::string found = disagreement(result, result.value("clients_gone", 0) > 0 || !outcome.failure.empty());
  if (!found.empty()) outcome.failure = found;
}

std::string kv_text(const Json& result) {
  if (!result.contains("lock_slots")) return "";
  std::string text;
  for (const char* const kind : kKinds) {
    const auto us = [&](const char* name) {
      const Json& value = result.at(fmt::format("{}_lat_{}_ns", kind, name));
      return value.is_null() ? std::string("-") : fmt::format("{:.3f}", value.get<double>() / 1e3);
    };
    text += fmt::format("  {}: {} Mops; latency in us: 50 % {}, 90 % {}, 99 % {}, 99.9 % {}, max {}\n",
                        std::string_view(kind) == "get" ? "GET" : "PUT",
                        with_digits(result.value(fmt::format("{}_mops", kind), 0.0), 3), us("p50"), us("p90"),
                        us("p99"), us("p99_9"), us("max"));
  }
  text += fmt::format("  {} looks at locks that were taken, {} torn READs done again, {} tickets skipped\n",
                      result.value("lock_retries", 0ull), result.value("torn_reads", 0ull),
                      result.value("tickets_skipped", 0ull));
  const Json& slots = result.at("lock_slots");
  text += fmt::format("  the locks reach {} of {} lock slots, if the low {} bits of an address choose the slot\n",
                      slots.value("reached", 0ull), slots.value("assumed", 0ull), kSlotBits);
  if (result.at("atomic_slot_waits_per_op").is_number()) {
    text += fmt::format("  waits for a lock slot: {:.3f} per operation, {:.1f} ns per operation\n",
                        result.value("atomic_slot_waits_per_op", 0.0), result.value("atomic_slot_wait_ns_per_op", 0.0));
  }
  return text + fmt::format("  records: {} PUTs in them, {} locked, {} not as their last PUT\n",
                            result.value("puts_in_records", 0ull), result.value("records_locked", 0ull),
                            result.value("records_inconsistent", 0ull));
}

}  // namespace verbscope
