#include "harness/trace/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "drivers_patch/counter_report.hpp"
#include "wire/verb.hpp"

namespace verbscope {
namespace {

using driver::CountedRequests;
using driver::PollUse;
using driver::QpSummary;
using driver::QueueUse;
using driver::Request;
using driver::SendTotals;
using driver::Summary;

// Length of the post lists that findings propose; also the proposed number of requests per signaled completion.
constexpr std::uint64_t kList = 16;
// Payloads at most kFewBytes above a line boundary, and messages whose last packet has at most kShortPacket bytes, are
// worth shortening.
constexpr std::uint64_t kFewBytes = 8;
constexpr std::uint64_t kShortPacket = 64;

// A program with one change, and the number of requests that the change concerns.
struct Changed {
  Summary program;
  std::uint64_t requests = 0;
  std::string detail;
};

// Number of successful polls per thread. Between two of them the thread posts all that is ready.
std::map<std::uint32_t, std::uint64_t> polls_of_threads(const Summary& program) {
  std::map<std::uint32_t, std::uint64_t> polls;
  for (const PollUse& use : program.poll_uses) polls[use.thread] += use.polls;
  return polls;
}

std::uint64_t posted_alone(const QueueUse& use) {
  std::uint64_t alone = 0;
  for (const CountedRequests& each : use.requests) alone += each.request.alone ? each.count : 0;
  return alone;
}

// Length of a list, if each of `ends` events ends a run of posts: 1 to kList.
std::uint64_t list_length(std::uint64_t posts, std::uint64_t ends) {
  return ends == 0 ? kList : std::clamp<std::uint64_t>(posts / ends, 1, kList);
}

// A list holds the requests that a thread posts singly to one QP before it posts to another QP or a poll succeeds.
Changed post_lists(Summary program, const Profile&) {
  auto polls = polls_of_threads(program);
  std::map<std::uint32_t, std::uint64_t> alone_of_threads;
  for (const QueueUse& use : program.uses) alone_of_threads[use.thread] += posted_alone(use);
  Changed out{.program = std::move(program), .detail = {}};
  for (QueueUse& use : out.program.uses) {
    const std::uint64_t alone = posted_alone(use);
    const std::uint64_t list =
        std::min(list_length(alone, use.turns), list_length(alone_of_threads[use.thread], polls[use.thread]));
    if (alone == 0 || list < 2) continue;
    for (CountedRequests& each : use.requests) each.request.alone = false;
    use.lists += divide_up(alone, list);
    out.requests += alone;
  }
  return out;
}

// Replaces each request for which `change` returns one.
template <class Change>
Changed change_requests(Summary program, Change&& change) {
  Changed out{.program = std::move(program), .detail = {}};
  for (QueueUse& use : out.program.uses) {
    QpSummary& qp = out.program.qps[use.qp];
    for (CountedRequests& each : use.requests) {
      const std::optional<Request> other = change(qp.facts, each.request);
      if (!other) continue;
      each.request = *other;
      out.requests += each.count;
    }
  }
  return out;
}

std::uint64_t wqe_blocks(const driver::WireFacts& wire, const driver::QpFacts& qp, const Request& request) {
  SendTotals totals;
  driver::add_request(wire, qp, request, 1, totals);
  return totals.wqe_blocks;
}

Changed send_inline(Summary program, const Profile& profile) {
  const driver::WireFacts wire = driver::facts_of(profile.wire);
  return change_requests(std::move(program), [&](const driver::QpFacts& qp, const Request& request) {
    const auto verb = driver::verb_of_opcode(request.opcode);
    const bool inlined = (request.flags & IBV_SEND_INLINE) != 0;
    if (!verb || !facts(*verb).may_inline || inlined || request.length == 0 ||
        request.length > profile.wire.max_inline.value) {
      return std::optional<Request>();
    }
    Request changed = request;
    changed.flags |= IBV_SEND_INLINE;
    changed.elements = 1;
    const bool fits = wqe_blocks(wire, qp, changed) * kWqeBlock.value <= wire.blueflame_max.value;
    return fits ? std::optional(changed) : std::nullopt;
  });
}

Changed shorten_inline(Summary program, const Profile& profile) {
  const driver::WireFacts wire = driver::facts_of(profile.wire);
  std::set<std::uint64_t> bytes;
  Changed out = change_requests(std::move(program), [&](const driver::QpFacts& qp, const Request& request) {
    if ((request.flags & IBV_SEND_INLINE) == 0) return std::optional<Request>();
    const std::uint64_t blocks = wqe_blocks(wire, qp, request);
    for (std::uint64_t less = 1; less <= std::min(kFewBytes, request.length); ++less) {
      Request changed = request;
      changed.length -= less;
      if (wqe_blocks(wire, qp, changed) == blocks) continue;
      bytes.insert(less);
      return std::optional(changed);
    }
    return std::optional<Request>();
  });
  if (!bytes.empty()) out.detail = fmt::format("{}", *bytes.rbegin());
  return out;
}

Changed shorten_messages(Summary program, const Profile&) {
  return change_requests(std::move(program), [](const driver::QpFacts& qp, const Request& request) {
    const auto verb = driver::verb_of_opcode(request.opcode);
    const std::uint64_t last = request.length % qp.mtu;
    if (!verb || request.length <= qp.mtu || last == 0 || last > kShortPacket) return std::optional<Request>();
    Request changed = request;
    changed.length -= last;
    changed.gather = {};
    return std::optional(changed);
  });
}

Changed signal_fewer(Summary program, const Profile&) {
  std::map<std::uint32_t, std::uint64_t> requests, completions;  // by QP
  for (const QueueUse& use : program.uses) {
    for (const CountedRequests& each : use.requests) requests[use.qp] += each.count;
    completions[use.qp] += use.send_completions;
  }
  Changed out{.program = std::move(program), .detail = {}};
  std::map<std::uint32_t, std::uint64_t> fewer;  // completions, by thread
  for (QueueUse& use : out.program.uses) {
    const std::uint64_t all = completions[use.qp], wanted = divide_up(requests[use.qp], kList);
    if (all <= wanted) continue;
    const auto less = static_cast<std::uint64_t>(static_cast<double>(use.send_completions) *
                                                 (1 - static_cast<double>(wanted) / static_cast<double>(all)));
    fewer[use.thread] += less;
    out.requests += less;
    use.send_completions -= less;
  }
  // A successful poll finds at least one completion.
  for (PollUse& use : out.program.poll_uses) {
    std::uint64_t& less = fewer[use.thread];
    const std::uint64_t taken = std::min(less, use.polled);
    use.polled -= taken;
    use.polls = std::min(use.polls, use.polled);
    less -= taken;
  }
  return out;
}

Changed post_recv_lists(Summary program, const Profile&) {
  auto polls = polls_of_threads(program);
  std::map<std::uint32_t, std::uint64_t> recvs_of_threads;
  for (const QueueUse& use : program.uses) recvs_of_threads[use.thread] += use.recvs;
  for (const driver::SharedRecvUse& use : program.shared_recv_uses) recvs_of_threads[use.thread] += use.recvs;
  Changed out{.program = std::move(program), .detail = {}};
  const auto change = [&](std::uint32_t thread, std::uint64_t recvs, std::uint64_t& posts) {
    const std::uint64_t fewer = divide_up(recvs, list_length(recvs_of_threads[thread], polls[thread]));
    if (fewer >= posts) return;
    out.requests += posts - fewer;
    posts = fewer;
  };
  for (QueueUse& use : out.program.uses) change(use.thread, use.recvs, use.recv_posts);
  for (driver::SharedRecvUse& use : out.program.shared_recv_uses) change(use.thread, use.recvs, use.recv_posts);
  return out;
}

// Moves the work of each thread's UD QPs onto as many QPs as the adapter has requester units.
Changed use_fewer_qps(Summary program, const Profile& profile) {
  const auto units = static_cast<std::size_t>(profile.nic.requester_units);
  std::map<std::uint32_t, std::vector<std::uint32_t>> used;  // by thread
  Changed out{.program = std::move(program), .detail = {}};
  std::set<std::uint32_t> beyond;
  std::map<std::uint32_t, std::size_t> seen;
  for (QueueUse& use : out.program.uses) {
    if (out.program.qps[use.qp].facts.type != IBV_QPT_UD || use.requests.empty()) continue;
    std::vector<std::uint32_t>& first = used[use.thread];
    if (first.size() < units) {
      first.push_back(use.qp);
      continue;
    }
    beyond.insert(use.qp);
    use.qp = first[seen[use.thread]++ % units];
    for (const CountedRequests& each : use.requests) out.requests += each.count;
  }
  out.detail = fmt::format("{}", beyond.size() + units);
  return out;
}

Changed poll_less(Summary program, const Profile&) {
  Changed out{.program = std::move(program), .detail = {}};
  for (PollUse& use : out.program.poll_uses) out.requests += std::exchange(use.in_passing, 0);
  return out;
}

Changed spread_atomics(Summary program, const Profile&) {
  Changed out{.program = std::move(program), .detail = {}};
  std::uint64_t noted = 0;
  for (QueueUse& use : out.program.uses) {
    noted += use.atomics.noted;
    for (auto& each : use.atomics.frequent) {
      out.requests += std::exchange(each.count, 0);
    }
  }
  out.detail = fmt::format("{}", noted);
  return out;
}

Changed allow_reads(Summary program, const Profile&) {
  Changed out{.program = std::move(program), .detail = {}};
  std::set<std::uint32_t> limits;
  for (QueueUse& use : out.program.uses) {
    std::uint32_t& at_once = out.program.qps[use.qp].facts.reads_at_once;
    if (at_once == 0 || at_once >= kMaxReads || use.reads_outstanding <= at_once) continue;
    for (const CountedRequests& each : use.requests) {
      const auto verb = driver::verb_of_opcode(each.request.opcode);
      if (verb && facts(*verb).wants_response) out.requests += each.count;
    }
    limits.insert(at_once);
    at_once = kMaxReads;
  }
  if (!limits.empty()) out.detail = fmt::format("{}", *limits.begin());
  return out;
}

Changed own_registers(Summary program, const Profile&) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::uint32_t>> threads;
  const auto place = [](const QpSummary& qp) { return std::pair(qp.context, qp.facts.doorbell_register); };
  for (const QueueUse& use : program.uses) {
    if (!use.requests.empty()) threads[place(program.qps[use.qp])].insert(use.thread);
  }
  Changed out{.program = std::move(program), .detail = {}};
  for (const QueueUse& use : out.program.uses) {
    const QpSummary& qp = out.program.qps[use.qp];
    if (!qp.facts.shared_register || threads[place(qp)].size() < 2) continue;
    for (const CountedRequests& each : use.requests) out.requests += each.count;
  }
  for (QpSummary& qp : out.program.qps) qp.facts.shared_register = false;
  return out;
}

Changed register_before(Summary program, const Profile&) {
  Changed out{.program = std::move(program), .detail = {}};
  for (driver::ContextSummary& context : out.program.contexts) {
    out.requests += std::exchange(context.late_registrations, 0);
    context.late_pages = 0;
  }
  return out;
}

struct Rule {
  const char* name;
  Changed (*change)(Summary program, const Profile& profile);
  const char* text;  // {0}: number of requests, {1}: the detail
};
constexpr Rule kRules[] = {
    {"one by one", post_lists,
     "{0} requests were posted one by one with nothing polled between them: post them in lists"},
    {"not inline", send_inline, "{0} requests have payloads that fit into their WQEs: set IBV_SEND_INLINE"},
    {"a line too long", shorten_inline,
     "{0} inline payloads take another 64-byte line for at most {1} bytes: make them shorter"},
    {"completions", signal_fewer, "{0} completions exceed one per 16 requests: signal fewer requests"},
    {"RECVs one by one", post_recv_lists, "{0} RECV posts would be saved by posting RECVs in lists"},
    {"too many QPs", use_fewer_qps,
     "{0} requests of a thread are spread over more UD QPs ({1}) than the adapter has units: use fewer QPs"},
    {"empty polls", poll_less, "{0} polls between other work found nothing: poll less often, or poll one shared CQ"},
    {"atomic addresses", spread_atomics,
     "{0} of {1} atomics that were noted share the low 12 bits of their addresses with others: spread them"},
    {"READs at once", allow_reads,
     "{0} READs and atomics waited because the connection allows {1} at a time: set max_rd_atomic to 16"},
    {"shared registers", own_registers,
     "{0} requests went by doorbell registers that threads share: more registers (MLX5_TOTAL_UUARS), or thread "
     "domains"},
    {"registrations", register_before, "{0} registrations were made while queues were in use: register memory before"},
    {"cut badly", shorten_messages,
     "{0} messages have a last packet of at most 64 bytes: shorter messages, or a larger path MTU"},
};

}  // namespace

std::vector<TraceFinding> find_costs(const Summary& program, const Profile& profile, double min_percent) {
  std::vector<TraceFinding> findings;
  const std::vector<ResourceTime> now = limits_of(program, profile);
  if (now.empty()) return findings;
  for (const Rule& rule : kRules) {
    const Changed changed = rule.change(program, profile);
    if (changed.requests == 0) continue;
    const std::vector<ResourceTime> then = limits_of(changed.program, profile);
    const double gain = (now.front().seconds / then.front().seconds - 1) * 100;
    if (gain < min_percent) continue;
    findings.push_back({.name = rule.name,
                        .text = fmt::format(fmt::runtime(rule.text), changed.requests, changed.detail),
                        .requests = changed.requests,
                        .gain_percent = gain,
                        .bound = then.front()});
  }
  std::ranges::stable_sort(findings, std::greater{}, &TraceFinding::gain_percent);
  return findings;
}

}  // namespace verbscope
