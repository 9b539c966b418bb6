#include "microbench/run/console.hpp"

#include <algorithm>

namespace verbscope {

namespace {

std::string point_line(const Traffic& traffic, const Record& record) {
  const Json& c = record.config;
  const std::string what = c.value("header_only", false)
                               ? "header-only"
                               : fmt::format("{} B{}", c.value("size", 0), c.value("inlined", false) ? " inline" : "");
  return fmt::format("{} on {}: {} {}, {}, post list {}, signal every {}, {} threads x {} QPs, {} clients\n",
                     record.benchmark, record.environment.value("fabric", ""), c.value("connection", ""), traffic.label,
                     what, c.value("post_list", 0), c.value("cq_mod", 0), c.value("threads", 0), c.value("qp", 0),
                     c.value("clients", 0));
}

std::string thread_range(const Json& threads) {
  double low = threads.at(0).at("rate_mops"), high = low;
  for (const Json& thread : threads) {
    low = std::min(low, thread.at("rate_mops").get<double>());
    high = std::max(high, thread.at("rate_mops").get<double>());
  }
  return threads.size() == 1 ? "" : fmt::format(" ({:.3f} to {:.3f} a thread)", low, high);
}

// Tells of a rate that was not steady in the first window, and for how long the point was lengthened.
std::string steadiness_note(const Record& record, const char* label) {
  const auto found = record.result.find("steadiness");
  if (found == record.result.end() || found->value("windows", 1) < 2) return "";
  return fmt::format("  not steady at once: this is window {}, after {:g} {}s (--longest {:g})\n",
                     found->value("windows", 0), found->value("before_s", 0.0), label,
                     record.config.value("longest_s", 0.0));
}

}  // namespace

std::string summary(const Traffic& traffic, const Record& record) {
  const bool simulated = record.environment.value("simulated", false);
  const char* label = simulated ? "simulated " : "";
  std::string text = point_line(traffic, record);
  text += fmt::format("  {:.3f} {}Mops{} over {:g} {}s\n", record.result.at("rate_mops").get<double>(), label,
                      thread_range(record.result.at("threads")), record.result.at("window_s").get<double>(), label);
  text += steadiness_note(record, label);
  if (record.prediction.is_object()) {
    text += fmt::format("  model: at most {:.3f} Mops, limited by {}\n", record.prediction.value("bound_mops", 0.0),
                        record.prediction.value("binding", ""));
  } else if (record.result.contains("no_prediction")) {
    text += fmt::format("  model: none: {}\n", record.result.value("no_prediction", ""));
  }
  if (record.result.value("messages_expected", 0ull) > 0) {
    text += fmt::format("  {} messages sent, {} received, {} lost\n", record.result.value("messages_expected", 0ull),
                        record.result.value("messages_received", 0ull), record.result.value("lost", 0ull));
  }
  if (record.result.contains("validation") && record.result.at("validation").is_object()) {
    text += fmt::format("  validated: {} {}, {} wrong\n", record.result.at("validation").value("checked", 0ull),
                        traffic.verb == Verb::write ? "places written to" : "messages",
                        record.result.at("validation").value("wrong", 0ull));
  }
  return text;
}

}  // namespace verbscope
