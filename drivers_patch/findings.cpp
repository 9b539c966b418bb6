#include "drivers_patch/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace verbscope::driver {
namespace {

// The list that others are compared with, and how often a completion is asked for there: once a list.
constexpr std::uint64_t kList = 16;
// Payloads that are so many bytes over what a WQE of fewer blocks holds could well be shorter.
constexpr std::uint64_t kFewBytes = 8;

// Time on the link is proportional to the bytes of its busier direction.
struct LinkBytes {
  double to_nic = 0, to_host = 0;
  double busier() const { return std::max(to_nic, to_host); }
};

LinkBytes link_bytes(const PcieCost& cost) {
  return {static_cast<double>(cost.exact.bytes_to_nic + cost.least.bytes_to_nic),
          static_cast<double>(cost.exact.bytes_to_host + cost.least.bytes_to_host)};
}

// What `count` requests cost with the doorbells that they need: each its own, or one a list.
PcieCost cost_of(const WireFacts& wire, const QpFacts& qp, const Request& request, std::uint64_t count,
                 std::uint64_t list) {
  SendTotals totals;
  add_request(wire, qp, request, count, totals);
  const std::uint64_t doorbells = request.alone ? count - totals.blueflames : divide_up(count, list);
  PcieCost cost = totals.pcie;
  add_doorbells(wire, doorbells, totals.doorbell_blocks, cost);
  return cost;
}

std::uint64_t wqe_blocks(const WireFacts& wire, const QpFacts& qp, const Request& request) {
  SendTotals totals;
  add_request(wire, qp, request, 1, totals);
  return totals.wqe_blocks;
}

// A change to a request, where it makes sense.
using Change = std::function<std::optional<Request>(const WireFacts&, const QpFacts&, const Request&)>;

std::optional<Request> inlined(const WireFacts& wire, const QpFacts& qp, const Request& request) {
  const std::optional<Verb> verb = verb_of_opcode(request.opcode);
  if (!verb || !facts(*verb).may_inline || (request.flags & IBV_SEND_INLINE) != 0 || request.length == 0) return {};
  Request changed = request;
  changed.flags |= IBV_SEND_INLINE;
  changed.elements = 1;
  const std::uint64_t most = wire.blueflame_max.value / kWqeBlock.value;
  return wqe_blocks(wire, qp, changed) <= most ? std::optional(changed) : std::nullopt;
}

std::optional<Request> shorter(const WireFacts& wire, const QpFacts& qp, const Request& request) {
  if ((request.flags & IBV_SEND_INLINE) == 0) return {};
  const std::uint64_t blocks = wqe_blocks(wire, qp, request);
  for (std::uint64_t less = 1; less <= std::min(kFewBytes, request.length); ++less) {
    Request changed = request;
    changed.length -= less;
    if (wqe_blocks(wire, qp, changed) < blocks) return changed;
  }
  return {};
}

std::optional<Request> in_lists(const WireFacts&, const QpFacts&, const Request& request) {
  if (!request.alone) return {};
  Request changed = request;
  changed.alone = false;
  return changed;
}

// Of the whole program, with each of its requests changed where `change` has something to change.
struct Changed {
  std::uint64_t requests = 0;
  LinkBytes bytes;
};

Changed change_all(const Summary& summary, const Change& change) {
  Changed out{.bytes = link_bytes(summary.whole.pcie)};
  for (const QpSummary& qp : summary.qps) {
    for (const CountedRequests& each : qp.requests) {
      const std::optional<Request> other = change(summary.wire, qp.facts, each.request);
      if (!other) continue;
      const LinkBytes before = link_bytes(cost_of(summary.wire, qp.facts, each.request, each.count, kList));
      const LinkBytes after = link_bytes(cost_of(summary.wire, qp.facts, *other, each.count, kList));
      out.requests += each.count;
      out.bytes.to_nic += after.to_nic - before.to_nic;
      out.bytes.to_host += after.to_host - before.to_host;
    }
  }
  return out;
}

// Of programs that ask for completions oftener than once in `kList` requests.
Changed fewer_completions(const Summary& summary) {
  Changed out{.bytes = link_bytes(summary.whole.pcie)};
  const std::uint64_t wanted = summary.whole.requests() / kList;
  if (summary.whole.sends.signaled <= wanted) return out;
  out.requests = summary.whole.sends.signaled - wanted;
  PcieCost cost;
  add_cqes(summary.wire, out.requests, cost);
  out.bytes.to_host -= link_bytes(cost).to_host;
  return out;
}

}  // namespace

std::vector<Finding> find_costs(const Summary& summary, double least_percent) {
  std::vector<Finding> findings;
  const double now = link_bytes(summary.whole.pcie).busier();
  const auto note = [&](const char* name, const Changed& changed, const std::string& text) {
    if (changed.requests == 0 || changed.bytes.busier() <= 0) return;
    const double gain = (now / changed.bytes.busier() - 1) * 100;
    if (gain >= least_percent) findings.push_back({name, text, changed.requests, gain});
  };
  if (!summary.wire.known) return findings;
  const auto text = [](const Changed& changed, const char* rest) {
    return fmt::format("{} {}", changed.requests, rest);
  };
  const Changed fits = change_all(summary, inlined);
  note("not inline", fits, text(fits, "requests have payloads that fit into their WQEs: set IBV_SEND_INLINE"));
  const Changed cut = change_all(summary, shorter);
  note("a line too long", cut, text(cut, "inline payloads take another line by 8 bytes at most: make them shorter"));
  const Changed lists = change_all(summary, in_lists);
  note("one by one", lists, text(lists, "requests were posted one by one: post lists of 16 where several are at hand"));
  const Changed quiet = fewer_completions(summary);
  note("completions", quiet, text(quiet, "completions more than one in 16 requests were asked for: signal fewer"));
  std::ranges::stable_sort(findings, std::greater{}, &Finding::gain_percent);
  return findings;
}

}  // namespace verbscope::driver
