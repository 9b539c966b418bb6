#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "analysis/compare.hpp"
#include "analysis/explain.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "wire/wqe.hpp"

namespace verbscope {
namespace {

// Smallest significant residual: the largest of 0.02 cache lines, 2 % of the model's value, and the operations that the
// ends of the interval cut off.
constexpr double kMinResidual = 0.02;
constexpr double kMinResidualShare = 0.02;

// Shares of the extra lines: from kMinNamedShare on a cause is named, from kMinDecidedShare on it explains all of them.
constexpr double kMinNamedShare = 0.1;
constexpr double kMinDecidedShare = 0.9;

constexpr const char* kReadCompletions = "read completions";

// A cause of extra reads, the options that increase it, and the simulator's counter for its lines.
struct Cause {
  std::string_view words;
  std::array<std::string_view, 3> options;
  std::string_view knob;  // the option's name in texts
  std::string_view counter;
};
constexpr std::array<Cause, 3> kCauses{{
    {"WQEs that were evicted from the adapter's cache are read again",
     {"window", "tx_depth", ""},
     "the WQEs outstanding",
     "wqe_cache_reread_lines"},
    {"contexts of QPs that miss the adapter's cache",
     {"qp", "connections", "clients"},
     "the number of QPs",
     "qp_context_read_lines"},
    {"address translations that miss the adapter's cache",
     {"region_size", "pages", ""},
     "the memory in use",
     "translation_misses"},
}};
enum CauseIndex : std::size_t { kWqes, kContexts, kTranslations };

struct Difference {
  PciePerOp counted, modelled;
  double edge = 0;  // post lists cut off at both ends of the interval, as a share of its operations

  bool significant(double difference, double expected) const {
    return std::abs(difference) > std::max({kMinResidual, kMinResidualShare * expected, edge * expected});
  }
};
std::optional<Difference> difference_of(const Record& record) {
  const auto counted = events_per_op(record);
  const auto prediction = prediction_of(record);
  if (record.status == RecordStatus::failed || !counted || !prediction) return std::nullopt;
  const double ops = number_at(record.result, "window_ops").value_or(0);
  return Difference{*counted, prediction->pcie, 2 * prediction->shape.post_list / ops};
}

Json options_of(const Record& record) {
  Json options = sweep_options(record);
  options.erase("point");
  options["benchmark"] = record.benchmark;
  options["fabric"] = record.environment.at("fabric");
  return options;
}

// On UD all clients use the same QPs, so more clients do not mean more QPs.
bool is_knob(std::string_view option, const Record& record) {
  return option != "clients" || text_at(record.config, "connection") != "UD";
}

double knob_value(const Record& record, const Cause& cause) {
  double value = 1;
  for (const std::string_view option : cause.options) {
    if (option == "pages" || !is_knob(option, record)) continue;
    if (const auto number = number_at(record.config, std::string(option))) value *= std::max(*number, 1.0);
  }
  return value;
}

std::string others_key(const Record& record, const Cause& cause) {
  Json options = options_of(record);
  options.erase("seed");
  for (const std::string_view option : cause.options) {
    if (is_knob(option, record)) options.erase(std::string(option));
  }
  return point_key(options);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : "; ") + part;
  return out;
}

// Lines per operation that the adapter counted for each cause; nothing if it has no such counter.
using Counted = std::array<std::optional<double>, kCauses.size()>;

Counted counted_lines(const Record& record) {
  Counted out;
  std::ranges::transform(kCauses, out.begin(),
                         [&](const Cause& cause) { return extra_per_op(record, std::string(cause.counter)); });
  return out;
}

// The cause of `per_op` extra lines by the adapter's own counters; nothing if they show none.
std::optional<Residual> counted_reads(const Counted& counted, double per_op) {
  std::vector<std::string> causes;
  double sum = 0;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const double lines = counted[i].value_or(0);
    if (lines < kMinNamedShare * per_op) continue;
    causes.push_back(
        fmt::format("{} ({:.2f} lines per operation by the adapter's own counters)", kCauses[i].words, lines));
    sum += lines;
  }
  if (causes.empty()) return std::nullopt;
  Residual out{.event = "reads", .per_op = per_op, .meaning = joined(causes)};
  out.decided = sum >= kMinDecidedShare * per_op;
  if (!out.decided) out.meaning += "; the evidence does not decide what else is read";
  return out;
}

Residual writes_residual(const Prediction& prediction, double per_op) {
  Residual out{.event = "writes", .per_op = per_op, .meaning = {}};
  const double payload_lines = std::ceil(static_cast<double>(prediction.shape.payload.value) / 64.0);
  const VerbShape& shape = prediction.shape;
  const InlineReceiveRoom room =
      inline_receive_room(prediction.wire.family, shape.transport, shape.verb, prediction.wire.cqe_bytes);
  const bool in_cqe = room.place == InlineReceive::in_cqe && shape.payload <= room.max_payload;
  const bool fits = payload_lines > 0 && in_cqe && prediction.role != "responder";
  if (per_op < 0 && fits && std::abs(-per_op - payload_lines) < 0.1 * payload_lines) {
    out.meaning = fmt::format(
        "the payload's {:g} line is never written by itself: it arrives in the CQE (inline receive)", payload_lines);
    out.decided = true;
  } else if (per_op < 0) {
    out.meaning = "fewer than results and completions need; the evidence does not decide why";
  } else {
    out.meaning = "more than results and completions need; the evidence does not decide why";
  }
  return out;
}

// Read completions: all TLPs to the NIC but MMIO writes.
double read_completions(const PciePerOp& events) {
  return events.tlps_to_nic - events.mmio_wc_lines - events.mmio_doorbells;
}

// Compares fewer completions than modelled with the model of larger ones: of RCB, its multiples, and MPS.
Residual fewer_completions(const Difference& difference, const Prediction& prediction) {
  const double counted = read_completions(difference.counted), modelled = read_completions(difference.modelled);
  const PcieLink& link = prediction.wire.pcie;
  Residual out{.event = kReadCompletions, .per_op = counted - modelled, .meaning = {}};
  std::vector<std::string> sizes;
  std::vector<std::uint64_t> fitting;
  for (std::uint64_t size = link.rcb.value; has_one_role(prediction) && size <= link.mps.value; size *= 2) {
    Prediction other = prediction;
    other.wire.pcie.completion = Bytes(size);
    const double expected = read_completions(predict_like(other, other.shape).pcie);
    const char* name = size == link.rcb.value ? " (RCB)" : size == link.mps.value ? " (MPS)" : "";
    sizes.push_back(fmt::format("{:.2f} of up to {} bytes{}", expected, size, name));
    if (size > link.completion.value && !difference.significant(counted - expected, expected)) fitting.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(fmt::format("{:.2f} of up to {} bytes", modelled, link.completion.value));
  out.decided = !fitting.empty();
  out.meaning = fmt::format("{:.2f} are counted, the model has {}; ", counted, fmt::join(sizes, ", "));
  out.meaning += out.decided ? fmt::format("the root complex completes with up to {} bytes{}", fitting[0],
                                           fitting.size() > 1 ? " or more" : "")
                             : "the evidence does not decide whether completions are larger or reads longer";
  return out;
}

// Completions that the counters do not see, but the link has no room for: the headers of as many as modelled do not fit
// beside the payload. Nothing if they fit, or no source counts the payload.
std::optional<Residual> impossible_completions(const Difference& difference, const Prediction& prediction,
                                               double per_second) {
  const PcieLink& link = prediction.wire.pcie;
  const double payload = difference.counted.payload_bytes_to_nic * per_second;
  const auto header = static_cast<double>(link.completion_header.value);
  const auto size = static_cast<double>(link.completion.value);
  const double most_payload = link.bandwidth().value * size / (size + header);
  const double most_completions = (link.bandwidth().value - payload) / header;
  if (!(payload > (1 + kMinResidualShare) * most_payload) || !(most_completions > 0)) return std::nullopt;
  return Residual{
      .event = kReadCompletions,
      .per_op = most_completions / per_second - read_completions(difference.modelled),
      .meaning = fmt::format("{:.2f} GB/s of payload are counted; with completions of up to {} bytes the "
                             "link carries {:.2f}: the root complex completes with at least {:.0f} bytes "
                             "on average",
                             payload * 1e-9, size, most_payload * 1e-9, std::floor(payload / most_completions)),
      .decided = true};
}

std::optional<Residual> completions_residual(const Difference& difference, const Prediction& prediction,
                                             double per_second) {
  const double counted = read_completions(difference.counted), modelled = read_completions(difference.modelled);
  if (!(counted > 0)) return impossible_completions(difference, prediction, per_second);
  // With fewer lines, fewer completions are no larger ones.
  const double lines = difference.counted.dma_read_lines - difference.modelled.dma_read_lines;
  const bool same_lines = lines >= 0 || !difference.significant(lines, difference.modelled.dma_read_lines);
  if (!std::isfinite(lines) || !same_lines || counted > modelled ||
      !difference.significant(counted - modelled, modelled))
    return std::nullopt;
  return fewer_completions(difference, prediction);
}

}  // namespace

Residuals::Residuals(const std::vector<const Record*>& records) : samples_(kCauses.size()) {
  for (const Record* record : records) {
    const auto difference = difference_of(*record);
    if (!difference) continue;
    const double extra = difference->counted.dma_read_lines - difference->modelled.dma_read_lines;
    if (!std::isfinite(extra)) continue;  // no source counted them
    for (std::size_t i = 0; i < kCauses.size(); ++i) {
      samples_[i][others_key(*record, kCauses[i])].push_back({knob_value(*record, kCauses[i]), extra});
    }
  }
}

// Compares the extra reads of points that differ only in this option.
Residuals::Growth Residuals::growth(const Record& record, std::size_t kind) const {
  const auto found = samples_[kind].find(others_key(record, kCauses[kind]));
  if (found == samples_[kind].end()) return Growth::unknown;
  const auto [least, most] = std::ranges::minmax_element(found->second, {}, &Sample::knob);
  if (least->knob == most->knob) return Growth::unknown;
  return most->extra_reads - least->extra_reads > std::max(kMinResidual, 0.1 * most->extra_reads) ? Growth::grows
                                                                                                  : Growth::does_not;
}

Residual Residuals::extra_reads(const Record& record, double per_op) const {
  Residual out{.event = "reads", .per_op = per_op, .meaning = {}};
  if (per_op < 0) {
    out.meaning = "fewer lines are read than WQEs and payload need: the evidence does not decide why";
    return out;
  }
  const Counted counted = counted_lines(record);
  if (const auto found = counted_reads(counted, per_op)) return *found;
  std::array<Growth, kCauses.size()> by{};
  std::vector<std::string> evidence, possible;
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    by[i] = growth(record, i);
    if (by[i] == Growth::grows) evidence.push_back(fmt::format("they grow with {}", kCauses[i].knob));
    if (by[i] == Growth::does_not) evidence.push_back(fmt::format("they do not grow with {}", kCauses[i].knob));
  }
  // More QPs also mean more outstanding WQEs. Without separate evidence about WQEs, growth with QPs does not separate
  // contexts from WQEs.
  const auto may_be = [&](std::size_t cause) {
    if (counted[cause]) return false;  // the adapter counted almost none of them
    if (cause == kWqes && by[kWqes] == Growth::unknown) return by[kContexts] != Growth::does_not;
    return by[cause] != Growth::does_not;
  };
  std::optional<std::size_t> cause;
  std::size_t grown = 0;
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    if (may_be(i)) possible.emplace_back(kCauses[i].words);
    if (by[i] != Growth::grows || counted[i]) continue;
    ++grown;
    cause = i;
  }
  if (by[kWqes] == Growth::grows && !counted[kWqes] && by[kTranslations] != Growth::grows) {
    cause = kWqes;
  } else if (grown != 1 || (cause == kContexts && by[kWqes] != Growth::does_not)) {
    cause.reset();
  }
  if (possible.empty()) possible.emplace_back("the adapter's own counters name no cause");
  out.decided = cause.has_value();
  if (cause) {
    out.meaning = std::string(kCauses[*cause].words) + (evidence.empty() ? "" : " (" + joined(evidence) + ")");
  } else {
    out.meaning = fmt::format("{}{}: the evidence does not decide; vary the options one at a time", joined(possible),
                              evidence.empty() ? "" : " (" + joined(evidence) + ")");
  }
  return out;
}

std::vector<Residual> Residuals::of(const Record& record) const {
  std::vector<Residual> out;
  const auto difference = difference_of(record);
  if (!difference) return out;
  const PciePerOp& counted = difference->counted;
  const PciePerOp& modelled = difference->modelled;
  const double rate = number_at(record.result, "rate_mops").value_or(0) * 1e6;
  if (const double reads = counted.dma_read_lines - modelled.dma_read_lines;
      difference->significant(reads, modelled.dma_read_lines)) {
    out.push_back(extra_reads(record, reads));
  }
  const double written = modelled.dma_write_full_lines + modelled.dma_write_partial_lines;
  if (const double writes = counted.dma_write_full_lines + counted.dma_write_partial_lines - written;
      difference->significant(writes, written)) {
    out.push_back(writes_residual(*prediction_of(record), writes));
  }
  const double lines = counted.mmio_wc_lines - modelled.mmio_wc_lines;
  const double doorbells = counted.mmio_doorbells - modelled.mmio_doorbells;
  if (difference->significant(lines, modelled.mmio_wc_lines)) {
    Residual mmio{.event = "MMIO lines", .per_op = lines, .meaning = {}};
    mmio.decided = lines < 0 && doorbells > kMinResidual;
    mmio.meaning = mmio.decided
                       ? "WQEs that the model sends by BlueFlame were announced by a doorbell and read by the NIC"
                       : "the evidence does not decide what wrote them";
    out.push_back(mmio);
  }
  if (auto completions = completions_residual(*difference, *prediction_of(record), rate)) {
    out.push_back(*std::move(completions));
  }
  for (Residual& residual : out) residual.per_second = residual.per_op * rate;
  return out;
}

}  // namespace verbscope
