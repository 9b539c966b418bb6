#include "nic_sim/profile/profile.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "common/json.hpp"
#include "common/paths.hpp"

namespace verbscope {
namespace {

constexpr Bytes kMaxHeaders{256};  // a generous limit for the headers of a packet

constexpr int kMaxBytes = 1 << 30;

// A section of the simulator.
class Section : public ParameterSection {
 public:
  Section(JsonFields& file, const std::string& name)
      : ParameterSection(JsonFields(file.at(name), file.where() + ": " + name)) {}

  // A key in ns.
  Picos time(const std::string& key, double min = 0) {
    constexpr double kSecond = 1e9;
    return Picos(std::llround(number(key, min, kSecond) * 1e3));
  }
  BytesPerSecond gbits(const std::string& key) { return BytesPerSecond{number(key, 0.001, 10'000) * 1e9 / 8}; }
};

// Converts a text to the value that has this name in `table`. Messages call it `what`.
template <class Table>
auto named(const Table& table, const char* what) {
  return [&table, what](const std::string& text) { return value_named(table, what, text); };
}

constexpr double kMinInterval = 100;  // ns; timers of congestion control are simulated interval by interval

// A tenth of a cycle: a thread whose polls take no time would poll forever.
constexpr double kMinPoll = 0.03;  // ns

HostProfile read_host(JsonFields& file) {
  Section s(file, "host");
  HostProfile host{
      .cores = s.integer("cores", 1, 1024),
      .threads_per_core = s.has("threads_per_core") ? s.integer("threads_per_core", 1, 2) : 1,
      .shared_core_speed = s.has("shared_core_speed") ? s.number("shared_core_speed", 0.1, 1) : 1,
      .post_call = s.time("post_call_ns"),
      .post_wqe = s.time("post_wqe_ns"),
      .wc_line = s.time("wc_line_ns"),
      .doorbell = s.time("doorbell_ns"),
      .poll_call = s.time("poll_call_ns", kMinPoll),
      .poll_cqe = s.time("poll_cqe_ns"),
      .poll_memory = s.time("poll_memory_ns", kMinPoll),
      .atomic_add = s.time("atomic_add_ns"),
      .line_transfer = s.time("line_transfer_ns"),
      .spinners_at_once = static_cast<std::uint32_t>(s.integer("spinners_at_once", 1, 1024)),
      .spinner_share = s.number("spinner_share", 0, 1),
      .queue_lines = static_cast<std::uint32_t>(s.integer("queue_lines", 1, 64)),
      .event_wakeup = s.time("event_wakeup_ns"),
      .post_recv_call = s.time("post_recv_call_ns"),
      .post_recv_wqe = s.time("post_recv_wqe_ns"),
      .register_call = s.time("register_call_ns"),
      .register_page = s.time("register_page_ns"),
      .wc_buffers = static_cast<std::uint64_t>(s.integer("wc_buffers_lines", 1, HostProfile::kMaxWcBuffers)),
      .memory_read = s.time("memory_read_ns"),
      .memory_read_jitter = s.time("memory_read_jitter_ns"),
      .dram = s.time("dram_ns"),
      .outstanding_misses = static_cast<std::uint64_t>(s.integer("outstanding_misses", 1, 1024)),
      .last_level_cache = s.bytes("last_level_cache_bytes", 1, kMaxBytes),
      .slow_read_probability = s.number("slow_read_probability", 0, 1),
      .slow_read_extra = s.time("slow_read_extra_ns"),
      .memory_write = s.time("memory_write_ns")};
  s.done();
  return host;
}

LinkProfile read_link(JsonFields& file) {
  Section s(file, "link");
  LinkProfile link{.tlp_share = s.number("tlp_share", 0.01, 1),
                   .host_share = s.number("host_share", 0.01, 1),
                   .mmio_gap = s.time("mmio_gap_ns"),
                   .propagation = s.time("propagation_ns"),
                   .read_tags = static_cast<std::uint64_t>(s.integer("read_tags", 1, 1024)),
                   .posted_credits = s.bytes("posted_credits_bytes", 1, kMaxBytes)};
  s.done();
  return link;
}

// Missing keys have the paper's values.
DcqcnParameters read_dcqcn(Section& s) {
  DcqcnParameters dcqcn;
  const auto time = [&s](const std::string& key, Picos& value) {
    if (s.has(key)) value = s.time(key, kMinInterval);
  };
  time("dcqcn_cnp_interval_ns", dcqcn.cnp_interval);
  time("dcqcn_alpha_timer_ns", dcqcn.alpha_timer);
  time("dcqcn_increase_timer_ns", dcqcn.increase_timer);
  if (s.has("dcqcn_gain")) dcqcn.gain = s.number("dcqcn_gain", 1e-6, 1);
  if (s.has("dcqcn_increase_bytes")) dcqcn.increase_bytes = s.bytes("dcqcn_increase_bytes", 1, kMaxBytes);
  if (s.has("dcqcn_fast_recovery")) dcqcn.fast_recovery = s.integer("dcqcn_fast_recovery", 1, 1000);
  if (s.has("dcqcn_additive_gbit_per_s")) dcqcn.additive = s.gbits("dcqcn_additive_gbit_per_s");
  if (s.has("dcqcn_hyper_gbit_per_s")) dcqcn.hyper = s.gbits("dcqcn_hyper_gbit_per_s");
  if (s.has("dcqcn_least_gbit_per_s")) dcqcn.min_rate = s.gbits("dcqcn_least_gbit_per_s");
  return dcqcn;
}

NicProfile read_nic(JsonFields& file, NicFamily family) {
  Section s(file, "nic");
  const int usual_device = facts(family).usual_device;
  NicProfile nic{.pci_device_id = s.has("pci_device_id") ? s.integer("pci_device_id", 1, 0xffff) : usual_device,
                 .requester_units = s.integer("requester_units", 1, 1024),
                 .front_end = s.time("front_end_ns"),
                 .doorbell_wqe = s.time("doorbell_wqe_ns"),
                 .blueflame_wqe = s.time("blueflame_wqe_ns"),
                 .wqe_block = s.time("wqe_block_ns"),
                 .gather = s.time("gather_ns"),
                 .next_packet = s.time("next_packet_ns"),
                 .responder_units = s.integer("responder_units", 1, 1024),
                 .handle_ack = s.time("handle_ack_ns"),
                 .handle_response = s.time("handle_response_ns"),
                 .receive_packet = s.time("receive_packet_ns"),
                 .receive_dma = s.time("receive_dma_ns"),
                 .receive_line = s.time("receive_line_ns"),
                 .receive_chunk = s.bytes("receive_chunk_bytes", 64, kMaxBytes),
                 .receive_inline = s.time("receive_inline_ns"),
                 .read_request = s.time("read_request_ns"),
                 .read_response = s.time("read_response_ns"),
                 .atomic_packet = s.time("atomic_packet_ns"),
                 .atomic_operation = s.time("atomic_operation_ns"),
                 .atomic_slots = static_cast<std::uint64_t>(s.integer("atomic_slots", 1, 1 << 20)),
                 .atomic_slot_lowest_bit = s.integer("atomic_slot_lowest_bit", 0, 32),
                 .transmit = s.time("transmit_ns"),
                 .wqe_cache = s.bytes("wqe_cache_bytes", 1, kMaxBytes),
                 .sent_wqe_cache = s.bytes("sent_wqe_cache_bytes", 1, kMaxBytes),
                 .sent_wqe_replacement = s.word("sent_wqe_replacement", named(kReplacements, "replacement")),
                 .reread_wqe = s.time("reread_wqe_ns"),
                 .wqe_fetch_ahead = s.bytes("wqe_fetch_ahead_bytes", 1, kMaxBytes),
                 .qp_context = s.bytes("qp_context_bytes", 1, kMaxBytes),
                 .qp_responder_context = s.bytes("qp_responder_context_bytes", 1, kMaxBytes),
                 .qp_context_cache = s.bytes("qp_context_cache_bytes", 1, kMaxBytes),
                 .qp_responder_context_cache = s.bytes("qp_responder_context_cache_bytes", 0, kMaxBytes),
                 .near_qp_contexts = static_cast<std::uint64_t>(s.integer("near_qp_contexts", 1, 1 << 20)),
                 .far_qp_context = s.time("far_qp_context_ns"),
                 .qp_context_miss = s.time("qp_context_miss_ns"),
                 .qp_context_reads = static_cast<std::uint64_t>(s.integer("qp_context_reads", 1, 1024)),
                 .translation_cache = s.bytes("translation_cache_bytes", 1, kMaxBytes),
                 .input_buffer = s.bytes("input_buffer_bytes", 1, kMaxBytes),
                 .ack_coalescing = s.integer("ack_coalescing_messages", 1, 1024)};
  if (s.has("ack_timeout_floor")) nic.ack_timeout_floor = s.integer("ack_timeout_floor", 0, 31);
  if (s.has("ack_timeout_factor")) nic.ack_timeout_factor = s.integer("ack_timeout_factor", 1, 64);
  if (s.has("congestion_control"))
    nic.congestion_control = s.word("congestion_control", named(kCongestionControls, "congestion control"));
  if (nic.congestion_control == CongestionControl::dcqcn) nic.dcqcn = read_dcqcn(s);
  s.done();
  return nic;
}

SwitchProfile read_switches(Section& s, Bytes mtu) {
  SwitchProfile switches{.buffer = s.bytes("buffer_bytes", 1, kMaxBytes),
                         .alpha = s.number("buffer_alpha", 1.0 / 1024, 1024),
                         .pfc_xoff = s.bytes("pfc_xoff_bytes", 1, kMaxBytes),
                         .pfc_xon = s.bytes("pfc_xon_bytes", 1, kMaxBytes),
                         .ecn_min = s.bytes("ecn_kmin_bytes", 0, kMaxBytes),
                         .ecn_max = s.bytes("ecn_kmax_bytes", 0, kMaxBytes),
                         .ecn_probability = s.number("ecn_pmax", 0, 1),
                         .rack_nodes = static_cast<std::uint32_t>(s.integer("rack_nodes", 0, 1 << 16)),
                         .uplinks = 0,
                         .uplink_rate = {}};
  if (switches.rack_nodes > 0) {
    switches.uplinks = static_cast<std::uint32_t>(s.integer("uplinks", 1, 1024));
    switches.uplink_rate = s.gbits("uplink_gbit_per_s");
    if (s.has("flow_paths"))
      switches.flow_paths = static_cast<std::uint32_t>(s.integer("flow_paths", 1, switches.uplinks));
  }
  if (switches.buffer < mtu + kMaxHeaders)
    s.fail("buffer_bytes", fmt::format("{} is too small for a packet of the MTU; at least {}", switches.buffer.value,
                                       (mtu + kMaxHeaders).value));
  if (switches.pfc_xon > switches.pfc_xoff)
    s.fail("pfc_xon_bytes",
           fmt::format("{} must not be above pfc_xoff_bytes {}", switches.pfc_xon.value, switches.pfc_xoff.value));
  if (switches.ecn_min > switches.ecn_max)
    s.fail("ecn_kmin_bytes",
           fmt::format("{} must not be above ecn_kmax_bytes {}", switches.ecn_min.value, switches.ecn_max.value));
  return switches;
}

FabricProfile read_fabric(JsonFields& file, const ClusterWire& wire) {
  Section s(file, "fabric");
  const LinkFacts& link = facts(wire.link_type);
  FabricProfile fabric{.cable = s.time("cable_ns"),
                       .switch_latency = s.time("switch_ns"),
                       .port_share = s.number("port_share", 0.01, 1),
                       .packet_gap = link.ethernet ? link.gap : s.bytes("packet_gap_bytes", 0, 1024),
                       .loss_probability = s.number("loss_probability", 0, 1)};
  const bool ethernet = link.ethernet;
  if (ethernet || s.has("flow_control"))
    fabric.flow_control = s.word("flow_control", named(kFlowControls, "flow control"));
  if (ethernet != (fabric.flow_control != FlowControl::credits)) {
    s.fail("flow_control",
           fmt::format("link type {} needs {}", to_string(wire.link_type), ethernet ? "none or pfc" : "credits"));
  }
  if (ethernet) fabric.switches = read_switches(s, wire.mtu);
  s.done();
  return fabric;
}

}  // namespace

Profile read_profile(const Json& json, const std::string& where) {
  ClusterWire wire = read_cluster_wire(json, where);
  JsonFields file(json, where);
  Profile profile{.name = wire.name,
                  .wire = wire,
                  .host = read_host(file),
                  .link = read_link(file),
                  .nic = read_nic(file, wire.family),
                  .fabric = read_fabric(file, wire)};
  if (profile.nic.input_buffer < profile.wire.mtu + kMaxHeaders) {
    fail("{}: nic: key \"input_buffer_bytes\": {} is too small for a packet of the MTU; at least {}", where,
         profile.nic.input_buffer.value, (profile.wire.mtu + kMaxHeaders).value);
  }
  if (!std::has_single_bit(profile.nic.atomic_slots)) {
    fail("{}: nic: key \"atomic_slots\": {} is not a power of two", where, profile.nic.atomic_slots);
  }
  return profile;
}

Profile load_profile(const std::string& name) {
  const std::filesystem::path path = find_config("clusters", name);
  return read_profile(read_json_file(path), path.string());
}

int receivers_needed(const Profile& profile) {
  const NicProfile& nic = profile.nic;
  const auto ns = [](Picos t) { return static_cast<double>(t.count()); };
  const double quickest_send = std::min(ns(nic.doorbell_wqe), ns(nic.blueflame_wqe)) + ns(nic.wqe_block);
  const double slowest_receive = ns(nic.receive_packet) + 2 * ns(nic.receive_dma);
  // Prevents a division by zero: at least a picosecond.
  const double sends = nic.requester_units / std::max(quickest_send, 1.0);
  const double receives = nic.responder_units / std::max(slowest_receive, 1.0);
  constexpr double kToSpare = 1.1;  // QPs are not divided evenly among units
  return std::clamp(static_cast<int>(std::ceil(std::min(kToSpare * sends / receives, 1.0 * kMaxReceivers))), 1,
                    kMaxReceivers);
}

}  // namespace verbscope
