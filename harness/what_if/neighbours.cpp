#include "harness/what_if/neighbours.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"

namespace verbscope {
namespace {

// Larger values are not used in practice and take long to simulate.
constexpr double kMostList = 512, kMostDepth = 8192;
// The path MTU matters only to operations of more than one packet.
constexpr double kLeastMtu = 256;

double in_profile(const Json& profile, const char* section, const char* key, double fallback) {
  const auto found = profile.find(section);
  if (found == profile.end() || !found->is_object() || !found->contains(key)) return fallback;
  return number_at((*found)[key], "value").value_or(fallback);
}

class Ladders {
 public:
  Ladders(const Record& record, const BenchmarkSpec& spec, const Json& profile)
      : record_(record), spec_(spec), profile_(profile) {}

  std::vector<OptionLadder> all() {
    posting();
    queues();
    machines();
    memory();
    return std::move(out_);
  }

 private:
  std::optional<double> now(const char* name) const { return number_at(record_.config, name); }
  bool is_on(const char* name) const { return record_.config.value(name, Json()) == Json(true); }

  void number(const char* name, double low, double high) {
    const OptionSpec* option = spec_.find(name);
    std::optional<double> value = now(name);
    // Window 0 means the depth of the queue.
    if (std::string_view(name) == "window" && value == 0.0) value = now("tx_depth");
    if (option == nullptr || !value || *value < 1) return;
    low = std::max(low, static_cast<double>(option->min));
    high = std::min(high, static_cast<double>(option->max));
    out_.push_back({.option = name, .now = *value, .number = true, .low = low, .high = std::max(high, *value)});
  }

  void values(const char* name, const Json& now, std::vector<Json> others) {
    if (spec_.find(name) == nullptr) return;
    std::erase(others, now);
    if (!others.empty()) out_.push_back({.option = name, .now = now, .values = std::move(others)});
  }

  // Tries every other word of the option.
  void words(const char* name) {
    const OptionSpec* option = spec_.find(name);
    if (option == nullptr || !option->allowed.is_array()) return;
    values(name, record_.config.value(name, Json()), option->allowed.get<std::vector<Json>>());
  }

  // Tries the flag on if it is off, and without it if it is on.
  void flag(const char* name) {
    values(name, is_on(name) ? Json(true) : Json(nullptr), {is_on(name) ? Json(nullptr) : Json(true)});
  }

  std::string registers() const {
    const std::string given = text_at(record_.config, "uars");
    return given.empty() ? "default" : given;
  }

  void posting() {
    const double size = now("size").value_or(0), most = in_profile(profile_, "wire", "max_inline_bytes", 0);
    number("post_list", 1, kMostList);
    number("cq_mod", 1, kMostDepth);
    number("recv_list", 1, kMostList);
    std::vector<Json> sizes{0};
    if (size > 0 && size <= most) sizes.emplace_back(static_cast<std::int64_t>(size));
    if (most > 0) sizes.emplace_back(static_cast<std::int64_t>(most));
    const Json inlined = static_cast<std::int64_t>(now("inline_size").value_or(0));
    const bool inlines = record_.config.value("inlined", false);
    if (inlines) std::erase_if(sizes, [](const Json& each) { return each != Json(0); });
    values("inline_size", inlined, std::move(sizes));
    if (size > 0 && size <= kImmediateBytes && !is_on("header_only")) flag("header_only");
    if (size > 0)
      values("inline_recv", static_cast<std::int64_t>(now("inline_recv").value_or(0)),
             {0, static_cast<std::int64_t>(size)});
    words("connection");
    words("locks");
    flag("batching");
    number("max_batch", 1, kMostList);
    for (const char* name : {"requests", "prefetch", "wait", "seen_by"}) words(name);
    if (is_on("events")) flag("events");
    flag("wr_api");
  }

  void queues() {
    number("window", 1, kMostDepth);
    number("outstanding", 1, kMostDepth);
    number("tx_depth", 1, kMostDepth);
    if (counted_in_all(record_, "messages_received") > 0) number("rx_depth", 1, kMostDepth);
    if (text_at(record_.config, "connection") == "RC" &&
        counted_in_all(record_, "reads_served") + counted_in_all(record_, "atomics_served") > 0)
      number("outs", 1, 255);
    flag("cq_per_qp");
    flag("srq");
  }

  void machines() {
    values("uars", registers(), {"default", "exclusive"});
    // One outstanding operation at a time does not become faster with more threads or QPs.
    if (keeps_one_outstanding(record_)) return;
    const double cores = in_profile(profile_, "host", "cores", 1);
    for (const char* name : {"threads", "client_threads", "threads_per_qp"}) number(name, 1, cores);
    for (const char* name : {"qp", "connections", "vms", "clients", "answer_qps"}) number(name, 1, 4096);
  }

  void memory() {
    words("pages");
    if (record_.config.contains("flow_control")) {
      words("flow_control");
      words("congestion_control");
    }
    const double size = now("size").value_or(0);
    if (const auto mtu = now("mtu"); mtu && size > kLeastMtu)
      values("mtu", static_cast<std::int64_t>(*mtu), {1024, 2048, 4096});
  }

  const Record& record_;
  const BenchmarkSpec& spec_;
  const Json& profile_;
  std::vector<OptionLadder> out_;
};

}  // namespace

std::vector<OptionLadder> option_ladders(const Record& record, const BenchmarkSpec& spec, const Json& profile,
                                         const std::vector<Limit>& limits) {
  std::vector<OptionLadder> out = Ladders(record, spec, profile).all();
  const auto relieves = [&limits](const OptionLadder& ladder) {
    return std::ranges::any_of(limits, [&](const Limit& limit) {
      const auto& options = facts(limit.load.resource).options;
      return std::ranges::find(options, ladder.option) != options.end();
    });
  };
  std::stable_partition(out.begin(), out.end(), relieves);
  return out;
}

std::string change_text(const OptionLadder& ladder, const Json& value) {
  if (value.is_null()) return "without --" + ladder.option;
  if (value == Json(true)) return "--" + ladder.option;
  const auto text = [](const Json& each) { return each.is_string() ? each.get<std::string>() : dump_json(each); };
  const Json now = ladder.now.is_number_float() ? Json(ladder.now.get<std::int64_t>()) : ladder.now;
  return fmt::format("--{} {} (now {})", ladder.option, text(value), now.is_null() ? "not given" : text(now));
}

}  // namespace verbscope
