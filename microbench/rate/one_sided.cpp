#include "microbench/rate/one_sided.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/loop/target.hpp"
#include "microbench/rate/both_ways.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kMaxRegion = std::uint64_t{1} << 36;

const std::vector<std::pair<std::string, WaitFor>> kWaits{
    {"any", WaitFor::any}, {"oldest", WaitFor::oldest}, {"all", WaitFor::all}};

std::string word_of(WaitFor wait) {
  return std::ranges::find(kWaits, wait, &std::pair<std::string, WaitFor>::second)->first;
}

std::string verb_name(Verb verb) {
  return verb == Verb::read ? "READ" : verb == Verb::write ? "WRITE" : "SEND";
}

}  // namespace

void OneSided::add_direction(OptionTable& table) {
  verbscope::add_direction(table, driver_);
}

void OneSided::add_bidirectional(OptionTable& table) {
  add_both_ways(table, both_ways_);
}

void OneSided::add_immediate(OptionTable& table) {
  table.flag("--write_with_imm", immediate_, "post WRITEs with an immediate; the targets post RECVs for them");
}

void OneSided::add_outstanding(OptionTable& table) {
  table.integer("--window", outstanding_, 0u, 1u << 20,
                "outstanding operations: per QP with --wait any (0: --tx_depth), else per thread");
  table.choice<WaitFor>("--wait", wait_, kWaits,
                        "operations that a thread waits for before it posts more: any one, the oldest, or all");
  add_seen_by(table);
  table.flag("--cq_per_qp", cq_per_qp_, "use one completion queue per QP, instead of one per thread");
  table.integer("--threads_per_qp", threads_per_qp_, 1u, 4096u,
                "threads of the server that share --qp QPs and their completion queue");
}

void OneSided::add_seen_by(OptionTable& table) {
  table.choice<SeenBy>("--seen_by", seen_by_, {{"completion", SeenBy::completion}, {"memory", SeenBy::memory}},
                       "detect a finished READ by its completion, or by its bytes in memory");
}

void OneSided::add_order(OptionTable& table) {
  table.choice<bool>("--order", random_turns_, {{"turn", false}, {"random", true}},
                     "order in which a thread uses its QPs");
}

void OneSided::add_region(OptionTable& table) {
  add_region(table, "size of each target's memory region; holds at least one payload");
}

void OneSided::add_region(OptionTable& table, const std::string& size_help) {
  table.bytes("--region_size", region_size_, std::uint64_t{1}, kMaxRegion, size_help);
  table.choice<Addresses>(
      "--addresses", addresses_, {{"sequential", Addresses::sequential}, {"random", Addresses::random}},
      "order in which a QP accesses the places of the region: one payload each, at multiples of 128 bytes");
  table.bytes("--alignment", alignment_, std::uint64_t{0}, std::uint64_t{1} << 30,
              "distance between the starts of places, which may overlap; 0: adjacent places");
  table.choice<bool>("--pages", huge_pages_, {{"4k", false}, {"2m", true}}, "page size of the targets' memory");
}

void OneSided::add_verb(OptionTable& table, bool with_send) {
  std::vector<std::pair<std::string, Verb>> verbs{{"read", Verb::read}, {"write", Verb::write}};
  if (with_send) verbs.emplace_back("send", Verb::send);
  if (!with_send) offer_transports(table, {Verb::read, Verb::write});
  table.choice<Verb>("--verb", verb_, verbs, "verb to post");
}

void OneSided::adjust(Options& options) {
  if (alignment_ > 0 && region_size_ / alignment_ >> 32 != 0) {
    fail_usage(
        "--alignment {}: --region_size {} has more than 2^32 such places; give a larger alignment or a smaller region",
        alignment_, region_size_);
  }
  if (alignment_ > 0 && options.validate) {
    fail_usage("--validate: not with --alignment {}, places that overlap cannot be checked", alignment_);
  }
  if (verb_ != Verb::send) {  // at least one place
    region_size_ =
        std::max(region_size_, payload_stride(options.header_only ? 0 : options.size.value_or(kDefaultSize)));
  }
  if (both_ways_) {
    if (driver_ == Side::client) fail_usage("--direction in: not with --bidirectional, both sides post");
    adjust_both_ways(options);
    both_sides_ = true;
  }
  if (immediate_) check_immediate(options);
  check_window(options);
  if (threads_per_qp_ > 1) check_sharing(options);
  if (!options.validate || verb_ == Verb::send) return;
  if (options.size == 0u) fail_usage("--validate: a {} of 0 bytes has nothing to check", verb_name(verb_));
  if (both_sides_ && verb_ == Verb::write) {
    fail_usage("--validate: not if all machines post WRITEs, no thread is free to check the memory");
  }
}

// Refuses options under which the target cannot receive immediates.
void OneSided::check_immediate(const Options& options) const {
  if (both_ways_) fail_usage("--write_with_imm: not with --bidirectional");
  if (wait_ != WaitFor::any) fail_usage("--write_with_imm: not with --wait {}", word_of(wait_));
  if (options.inline_recv > 0)
    fail_usage("--inline_recv: not with --write_with_imm, the payload of a WRITE is not in the RECV");
}

// Checks the limit of outstanding operations per thread (--wait oldest or all), and options that need it.
void OneSided::check_window(Options& options) const {
  if (wait_ == WaitFor::any) {
    if (seen_by_ == SeenBy::memory) fail_usage("--seen_by memory: only with --wait oldest or all");
    if (cq_per_qp_) fail_usage("--cq_per_qp: only with --wait oldest or all");
    return;
  }
  const std::string wait = word_of(wait_);
  if (verb_ == Verb::send) fail_usage("--wait {}: not with --verb send", wait);
  if (by_cq_mod_) return;
  if (outstanding_ == 0) fail_usage("--wait {}: --window must be at least 1", wait);
  if (outstanding_ > options.tx_depth) {
    fail_usage("--window {} is more than a send queue holds (--tx_depth {})", outstanding_, options.tx_depth);
  }
  if (outstanding_ % options.post_list != 0) {
    fail_usage("--window {}: with --wait {} expected a multiple of --post_list {}", outstanding_, wait,
               options.post_list);
  }
  if (cq_per_qp_ && options.events) fail_usage("--events: not with --cq_per_qp");
  if (seen_by_ == SeenBy::memory) return check_memory(options);
  if (!options.cq_mod) options.cq_mod = 1;
  const bool one_queue = options.qp == 1 && driver_ == Side::server && !both_sides_;
  if (*options.cq_mod > 1 && (!one_queue || outstanding_ % *options.cq_mod != 0)) {
    fail_usage(
        "--cq_mod {}: with --wait {} expected 1; on one QP a divisor of --window {} is allowed, with --seen_by memory "
        "any "
        "number",
        *options.cq_mod, wait, outstanding_);
  }
}

void OneSided::check_memory(const Options& options) const {
  if (verb_ != Verb::read) fail_usage("--seen_by memory: only with READs, not with a {}", verb_name(verb_));
  if (options.size == 0u) fail_usage("--seen_by memory: --size must be at least 1");
  if (options.fabric == "null") fail_usage("--seen_by memory: --fabric null moves no bytes");
  if (options.validate) fail_usage("--validate: not with --seen_by memory, which overwrites the received bytes");
  if (options.events) fail_usage("--events: not with --seen_by memory, which polls");
  if (options.inline_recv > 0)
    fail_usage("--inline_recv: not with --seen_by memory, the bytes would arrive in the CQE");
}

void OneSided::check_sharing(const Options& options) const {
  const auto refuse = [this](const std::string& why) { fail_usage("--threads_per_qp {}: {}", threads_per_qp_, why); };
  if (both_sides_ || driver_ != Side::server) refuse("only if the server alone posts");
  if (wait_ == WaitFor::any) refuse("only with --wait oldest or all");
  if (options.fabric == "null") refuse("not with --fabric null, whose queues have no locks");
  if (options.events) refuse("not with --events, which wake only one of the threads that share a completion queue");
  const std::uint32_t sharing = std::min(threads_per_qp_, options.threads);
  if (options.iters && (options.threads % sharing != 0 || *options.iters * options.qp % sharing != 0)) {
    refuse(fmt::format("with --iters {} expected --threads, and --iters times --qp, to be multiples of {}",
                       *options.iters, sharing));
  }
  if (options.uars == "exclusive") refuse("not with --uars exclusive, which gives each thread its own QPs");
  const std::uint64_t outstanding = std::uint64_t{sharing} * outstanding_;
  if (outstanding > options.tx_depth) {
    refuse(
        fmt::format("with --window {} up to {} requests are outstanding, more than a send queue holds (--tx_depth {})",
                    outstanding_, outstanding, options.tx_depth));
  }
}

Plan OneSided::draft() const {
  const char* direction = both_ways_ ? " both ways" : driver_ == Side::server ? " out" : " in";
  return {.operation = {.verb = verb_,
                        .driver = driver_,
                        .counted = verb_ == Verb::send ? Side::server : driver_,  // the receiver counts SENDs
                        .most_outstanding = wait_ == WaitFor::any ? outstanding_ : 0,
                        .cq_per_qp = cq_per_qp_,
                        .label = verb_name(verb_) + direction,
                        .immediate = immediate_,
                        .both_ways = both_ways_},
          .topology = {.threads_per_qp = threads_per_qp_}};
}

QueueNeeds OneSided::needs(const Operation& op, Side side) const {
  if (posts(side)) return sender_needs(op);
  if (op.immediate) return receiver_needs(recv_of_immediate(op));
  return op.verb == Verb::send ? receiver_needs(op) : QueueNeeds{};
}

RegionNeeds OneSided::region(const Operation& op, Side side, std::uint32_t) const {
  RegionNeeds needs;
  const bool target = op.verb != Verb::send && (both_sides_ || side != driver_);
  if (!target) return needs;
  needs.bytes = target_bytes(op, region_size_) * region_shares_;
  needs.huge_pages = huge_pages_;
  if (seen_by_ != SeenBy::memory) needs.access = unwatched(op, needs.access);
  return needs;
}

void OneSided::fill(const Operation& op, Side, std::span<std::byte> region) const {
  if (op.verb != Verb::read) return;
  if (seen_by_ == SeenBy::memory) {
    std::ranges::fill(region, kSeenByte);
  } else {
    fill_target(op, region);
  }
}

std::unique_ptr<Workload> OneSided::setup(const ThreadSetup& setup) const {
  const SenderOptions order{.addresses = addresses_, .random_turns = random_turns_, .alignment = alignment_};
  if (posts(setup.side)) {
    if (wait_ == WaitFor::any) return make_sender(setup, order);
    return make_window_sender(setup, {.order = order,
                                      .window = outstanding_,
                                      .whole = wait_ == WaitFor::all,
                                      .seen_by = seen_by_,
                                      .share_of_thread = region_shares_ > 1});
  }
  return setup.operation.verb == Verb::send ? make_receiver(setup) : make_target(setup);
}

Prediction OneSided::predict(const ClusterWire& cluster, const Operation& op, int ports) const {
  if (both_ways_) return predict_run(cluster, op, ports, Json::object());
  if (both_sides_) fail("the model has one side that posts, not both");
  if (driver_ == Side::server) return predict_requester(cluster, verb_shape(op, ports));
  if (op.verb == Verb::send) return predict_listed_receiver(cluster, op, ports);
  return predict_responder(cluster, op.immediate ? listed_recv_shape(cluster, op, ports) : verb_shape(op, ports));
}

Prediction OneSided::predict_run(const ClusterWire& cluster, const Operation& op, int ports, const Json& result) const {
  if (!both_ways_) return predict(cluster, op, ports);
  const VerbShape shape = verb_shape(op, ports);
  return predict_both_ways(predict_requester(cluster, shape), predict_responder(cluster, shape), result);
}

}  // namespace verbscope
