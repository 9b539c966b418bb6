#include "microbench/rate/one_sided.hpp"

#include "common/error.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/sender.hpp"
#include "microbench/loop/target.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kLargestRegion = std::uint64_t{1} << 36;

std::string verb_name(Verb verb) {
  return verb == Verb::read ? "READ" : verb == Verb::write ? "WRITE" : "SEND";
}

}  // namespace

void OneSided::add_direction(OptionTable& table) {
  table.choice<Side>("--direction", driver_, {{"out", Side::server}, {"in", Side::client}},
                     "out: the server posts; in: the clients post to the server, and the rate is theirs");
}

void OneSided::add_outstanding(OptionTable& table) {
  table.integer("--window", outstanding_, 0u, 1u << 20, "operations outstanding on each QP; 0: as many as --tx_depth");
}

void OneSided::add_region(OptionTable& table) {
  table.integer("--region_size", region_size_, std::uint64_t{1}, kLargestRegion,
                "bytes of each target's memory that the operations go to; at least one place");
  table.choice<Addresses>("--addresses", addresses_,
                          {{"sequential", Addresses::sequential}, {"random", Addresses::random}},
                          "order of the places, each a multiple of 128 bytes");
  table.choice<bool>("--pages", huge_pages_, {{"4k", false}, {"2m", true}}, "pages of the targets' memory");
}

void OneSided::add_verb(OptionTable& table, bool with_send) {
  std::vector<std::pair<std::string, Verb>> verbs{{"read", Verb::read}, {"write", Verb::write}};
  if (with_send) verbs.emplace_back("send", Verb::send);
  table.choice<Verb>("--verb", verb_, verbs, "what is posted");
}

void OneSided::adjust(Options& options) {
  if (!options.validate || verb_ == Verb::send) return;
  if (options.size == 0u) fail_usage("--validate: a {} of 0 bytes leaves nothing to check", verb_name(verb_));
  if (everybody_ && verb_ == Verb::write) {
    fail_usage("--validate: where both sides post WRITEs (--active all) nobody is left to look at the memory");
  }
}

Traffic OneSided::traffic() const {
  Traffic traffic;
  traffic.verb = verb_;
  traffic.driver = traffic.counted = driver_;
  if (verb_ == Verb::send) traffic.counted = Side::server;  // inbound SENDs count where they are received
  traffic.most_outstanding = outstanding_;
  traffic.label = verb_name(verb_) + (driver_ == Side::server ? " out" : " in");
  return traffic;
}

QueueNeeds OneSided::needs(const Operation& op, Side side) const {
  if (posts(side)) return sender_needs(op);
  return op.verb == Verb::send ? receiver_needs(op) : QueueNeeds{};
}

RegionNeeds OneSided::region(const Operation& op, Side side, std::uint32_t) const {
  RegionNeeds needs;
  const bool target = op.verb != Verb::send && (everybody_ || side != driver_);
  if (!target) return needs;
  needs.bytes = target_bytes(op, region_size_);
  needs.huge_pages = huge_pages_;
  return needs;
}

void OneSided::fill(const Operation& op, Side, std::span<std::byte> region) const {
  if (op.verb == Verb::read) fill_target(op, region);
}

std::unique_ptr<Workload> OneSided::setup(const ThreadSetup& setup) const {
  if (posts(setup.side)) return make_sender(setup, {addresses_, random_turns_});
  return setup.operation.verb == Verb::send ? make_receiver(setup) : make_target(setup);
}

Prediction OneSided::predict(const ClusterWire& cluster, const Operation& op, int ports) const {
  if (everybody_) fail("the model has one side that posts, not both");
  if (driver_ == Side::server) return predict_requester(cluster, verb_shape(op, ports));
  if (op.verb != Verb::send) return predict_responder(cluster, verb_shape(op, ports));
  return predict_listed_receiver(cluster, op, ports);
}

}  // namespace verbscope
