#include "systems/store/store.hpp"

#include <algorithm>
#include <array>

#include "common/error.hpp"
#include "common/record.hpp"
#include "common/text.hpp"
#include "microbench/bench/options.hpp"
#include "systems/requests/peers.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kRequestInline = 256;  // bytes, as section 5.3 inlines requests

}  // namespace

void settle_clients(Options& common) {
  if (!is_simulated(common.fabric)) return;
  common.clients = common.clients.value_or(kPaperMachines);
  common.client_threads = common.client_threads.value_or(kPaperThreads);
}

std::uint32_t settle_inlining(Options& common, const OptionTable& table) {
  if (!table.given("--inline_size")) common.inline_size = kResponseInline;
  return common.inline_size == 0 ? 0 : std::max(common.inline_size, kRequestInline);
}

void check_writers(const Topology& topology, const StoreValues& values) {
  if (topology.all_client_threads() <= values.max_writers()) return;
  fail_usage("--clients {}, {} client threads: a value of {} bytes can name at most {} client threads",
             topology.clients, topology.all_client_threads(), values.bytes(), values.max_writers());
}

ClientOracleParts::ClientOracleParts(const ThreadSetup& setup, const StoreOptions& options)
    : workload(options, setup.operation.seed),
      oracle(workload, StoreValues(setup.operation.seed, setup.operation.payload), number_of_client(setup),
             setup.topology.all_client_threads(),
             oracle_places(options.keys,
                           options.one_process ? setup.topology.all_client_threads() : setup.topology.client_threads)) {
  check_writers(setup.topology, oracle.values());
}

namespace {

struct Key {
  const char* name;
  std::uint64_t StoreCounts::*count;
};
// These are summed over threads, then over clients. A report has a "checked" and a "wrong" of its own.
constexpr std::array<Key, 14> kCounted = {{{"asked", &StoreCounts::asked},
                                           {"gets", &StoreCounts::gets},
                                           {"puts", &StoreCounts::puts},
                                           {"misses", &StoreCounts::misses},
                                           {"window_gets", &StoreCounts::window_gets},
                                           {"window_puts", &StoreCounts::window_puts},
                                           {"window_misses", &StoreCounts::window_misses},
                                           {"retries", &StoreCounts::retries},
                                           {"surplus", &StoreCounts::surplus},
                                           {"values_checked", &StoreCounts::checked},
                                           {"own_puts_checked", &StoreCounts::own_checked},
                                           {"values_torn", &StoreCounts::torn},
                                           {"values_wrong", &StoreCounts::wrong},
                                           {"values_stale", &StoreCounts::stale}}};
constexpr std::array<const char*, 2> kKinds = {"get", "put"};

std::string histogram_key(const std::string& kind) {
  return kind + "_lat_packed";
}
std::string rate_key(const std::string& kind) {
  return kind + "_mops";
}

Json latency_json(const Histogram& latency, const std::string& prefix) {
  Json json = latency.to_json(prefix);
  for (const int percent : {5, 95}) {
    json[fmt::format("{}_p{}_ns", prefix, percent)] =
        latency.count() == 0 ? Json() : Json(to_seconds(latency.percentile(percent)) * 1e9);
  }
  return json;
}

// One line about what is wrong; empty: nothing.
std::string disagreement(const Json& result) {
  const auto count = [&result](const char* key) { return result.at("checks").at(key).get<std::uint64_t>(); };
  if (count("wrong") + count("torn") > 0) {
    return fmt::format("{} of {} values match no version that a client wrote for their key, {} mix two versions",
                       count("wrong"), count("values"), count("torn"));
  }
  if (count("stale") > 0) {
    return fmt::format("{} values are older than an acknowledged PUT of their client", count("stale"));
  }
  if (!result.contains("puts_executed") || result.contains("clients_gone")) return "";
  const auto executed = result.at("puts_executed").get<std::uint64_t>(), puts = result.at("puts").get<std::uint64_t>();
  if (executed != puts) return fmt::format("the server executed {} PUTs, the clients asked for {}", executed, puts);
  return "";
}

// The keys of every store from the client threads of one node; empty without any.
Json store_client_json(const std::vector<const Workload*>& threads) {
  StoreCounts sums;
  std::array<Histogram, 2> latency;
  std::array<double, 2> mops{};
  bool some = false;
  for (const Workload* thread : threads) {
    const auto* client = dynamic_cast<const StoreClientAccount*>(thread);
    if (client == nullptr) continue;
    some = true;
    const ClientOracle& oracle = client->oracle();
    for (const Key& key : kCounted) sums.*key.count += oracle.counts.*key.count;
    latency[0].merge(oracle.get_latency);
    latency[1].merge(oracle.put_latency);
    if (client->window() <= Picos(0)) continue;
    mops[0] += to_mops(Ops(oracle.counts.window_gets), client->window());
    mops[1] += to_mops(Ops(oracle.counts.window_puts), client->window());
  }
  Json json = Json::object();
  if (!some) return json;
  for (const Key& key : kCounted) json[key.name] = sums.*key.count;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    json[rate_key(kKinds[i])] = mops[i];
    json[histogram_key(kKinds[i])] = latency[i].pack();
    json.update(latency_json(latency[i], std::string(kKinds[i]) + "_lat"));
  }
  return json;
}

}  // namespace

Description Store::describe() const {
  return {.name = "kv_rate", .summary = "Rate and latency of a key-value store, with every value checked."};
}

Json Store::results(const std::vector<const Workload*>& threads) const {
  Json json = store_client_json(threads);
  if (json.empty()) return server_results(threads);
  json.update(client_results(threads));
  return json;
}

void Store::finish(Outcome& outcome) const {
  Json& result = outcome.result;
  if (!result.contains("clients")) return;  // the null device
  StoreCounts sums;
  for (const char* kind : kKinds) result[rate_key(kind)] = 0.0;
  for (const Json& client : result.at("clients")) {
    JsonFields fields(client.at("result"), "result of " + client.value("node", ""));
    for (const Key& key : kCounted) sums.*key.count += fields.require<std::uint64_t>(key.name);
    for (const char* kind : kKinds) {
      result[rate_key(kind)] = result.at(rate_key(kind)).get<double>() + fields.require<double>(rate_key(kind));
    }
  }
  Histogram all;
  for (const std::string kind : kKinds) {
    const Histogram latency = take_client_histograms(result, histogram_key(kind));
    result.update(latency_json(latency, kind + "_lat"));
    all.merge(latency);
  }
  result.update(latency_json(all, "lat"));
  for (const char* key : {"gets", "puts", "misses", "retries", "surplus"}) {
    for (const Key& each : kCounted) {
      if (std::string_view(each.name) == key) result[key] = sums.*each.count;
    }
  }
  result["get_miss_share"] =
      sums.gets == 0 ? Json() : Json(static_cast<double>(sums.misses) / static_cast<double>(sums.gets));
  result["checks"] = Json{{"values", sums.checked},
                          {"own_puts", sums.own_checked},
                          {"torn", sums.torn},
                          {"wrong", sums.wrong},
                          {"stale", sums.stale}};
  add_results(result);
  std::string found = disagreement(result);
  if (found.empty()) found = check(result);
  if (outcome.failure.empty()) outcome.failure = found;
}

std::string Store::report(const Json& result) const {
  if (!result.contains("checks")) return store_report(result);  // of a client, or on the null device
  std::string text;
  for (const std::string kind : kKinds) {
    const auto us = [&](const char* name) {
      const Json& value = result.at(fmt::format("{}_lat_{}_ns", kind, name));
      return value.is_null() ? std::string("-") : fmt::format("{:.2f}", value.get<double>() / 1e3);
    };
    text += fmt::format("  {}: {} Mops; latency in us: mean {}, 5 % {}, 50 % {}, 95 % {}, 99 % {}\n",
                        kind == "get" ? "GET" : "PUT", with_digits(result.at(rate_key(kind)).get<double>(), 3),
                        us("mean"), us("p5"), us("p50"), us("p95"), us("p99"));
  }
  const auto count = [](const Json& of, const char* key) { return of.at(key).get<std::uint64_t>(); };
  const Json& checks = result.at("checks");
  text += fmt::format(
      "  checked: {} values, {} of them against PUTs of their own client; {} wrong, {} torn, {} stale; "
      "{} requests sent again\n",
      count(checks, "values"), count(checks, "own_puts"), count(checks, "wrong"), count(checks, "torn"),
      count(checks, "stale"), count(result, "retries"));
  return text + store_report(result);
}

}  // namespace verbscope
