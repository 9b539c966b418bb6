#include "harness/learn/parameters.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/points.hpp"

namespace verbscope {
namespace {

constexpr double kSomeNs = 10;  // offset of times that may be 0, ns
// Offsets of times that add up: of a core or a unit for an operation, and of the path of a message. In their logarithms
// the values that have the same sum would lie on a curve, which no linear step follows.
constexpr double kServiceNs = 50, kPathNs = 300;
constexpr double kRounding = 1e-9;
constexpr bool kInteger = true;

// Not in the table: facts that a host states (PCIe, port, MTU, cores), sizes that verbs programs can read, and
// parameters without effect on a steady run (registration, wake-ups, packet loss).
constexpr std::array kLearnable = {
    LearnableParameter{"host.post_call_ns", "CPU, each ibv_post_send", ParameterGroup::cpu, 1, 1000, kServiceNs},
    LearnableParameter{"host.post_wqe_ns", "CPU, each WQE posted", ParameterGroup::cpu, 1, 1000, kServiceNs},
    LearnableParameter{"host.wc_line_ns", "CPU, each 64-byte line written to the adapter", ParameterGroup::cpu, 1, 500,
                       kServiceNs},
    LearnableParameter{"host.doorbell_ns", "CPU, each doorbell", ParameterGroup::cpu, 1, 500, kServiceNs},
    LearnableParameter{"host.poll_call_ns", "CPU, each ibv_poll_cq", ParameterGroup::cpu, 1, 500, kServiceNs},
    LearnableParameter{"host.poll_cqe_ns", "CPU, each completion polled", ParameterGroup::cpu, 1, 500, kServiceNs},
    LearnableParameter{"host.line_transfer_ns", "transfer of a cache line between cores", ParameterGroup::cpu, 5, 1000,
                       0, false, kThreads},
    LearnableParameter{"host.post_recv_call_ns", "CPU, each ibv_post_recv", ParameterGroup::cpu, 1, 500, kServiceNs,
                       false, kRecv},
    LearnableParameter{"host.post_recv_wqe_ns", "CPU, each RECV posted", ParameterGroup::cpu, 1, 500, kServiceNs, false,
                       kRecv},
    LearnableParameter{"host.memory_read_ns", "latency of host memory for a DMA read", ParameterGroup::path, 10, 2000,
                       kPathNs},
    LearnableParameter{"host.memory_write_ns", "latency of a DMA write until it is visible", ParameterGroup::path, 5,
                       1000, kPathNs},
    LearnableParameter{"link.tlp_share", "share of PCIe to the adapter left to TLPs", ParameterGroup::pcie, 0.3, 1},
    LearnableParameter{"link.host_share", "share of PCIe to the host left to TLPs", ParameterGroup::pcie, 0.3, 1},
    LearnableParameter{"link.mmio_gap_ns", "PCIe, after each MMIO write", ParameterGroup::pcie, 0, 100, 1},
    LearnableParameter{"link.posted_credits_bytes", "DMA writes that wait for PCIe", ParameterGroup::pcie, 512, 65536,
                       0, kInteger},
    LearnableParameter{"link.propagation_ns", "PCIe, one way", ParameterGroup::path, 10, 1000, kPathNs},
    LearnableParameter{"link.read_tags", "outstanding DMA reads", ParameterGroup::pcie, 8, 1024, 0, kInteger, kOverlap},
    LearnableParameter{"nic.requester_units", "requester units", ParameterGroup::requester, 1, 128, 0, kInteger,
                       kOverlap},
    LearnableParameter{"nic.front_end_ns", "latency from a doorbell to its fetch", ParameterGroup::path, 5, 1000,
                       kPathNs},
    LearnableParameter{"nic.doorbell_wqe_ns", "requester unit, each fetched WQE", ParameterGroup::requester, 5, 2000,
                       kServiceNs},
    LearnableParameter{"nic.blueflame_wqe_ns", "requester unit, each WQE by BlueFlame", ParameterGroup::requester, 5,
                       2000, kServiceNs},
    LearnableParameter{"nic.wqe_block_ns", "requester unit, each 64-byte block of a WQE", ParameterGroup::requester, 0,
                       500, kServiceNs},
    LearnableParameter{"nic.gather_ns", "requester unit, each WQE with payload by DMA", ParameterGroup::requester, 0,
                       2000, kSomeNs, false, kGather},
    LearnableParameter{"nic.next_packet_ns", "requester unit, each further packet", ParameterGroup::requester, 2, 1000,
                       kServiceNs, false, kPackets},
    LearnableParameter{"nic.responder_units", "responder units", ParameterGroup::responder, 1, 128, 0, kInteger},
    LearnableParameter{"nic.handle_ack_ns", "responder unit, each acknowledgement", ParameterGroup::responder, 2, 2000,
                       kServiceNs, false, kReliable},
    LearnableParameter{"nic.handle_response_ns", "responder unit, each packet of a response", ParameterGroup::responder,
                       5, 2000, kServiceNs, false, kReliable},
    LearnableParameter{"nic.receive_packet_ns", "responder unit, each request packet", ParameterGroup::responder, 5,
                       2000, kServiceNs},
    LearnableParameter{"nic.receive_dma_ns", "responder unit, each DMA of a packet", ParameterGroup::responder, 5, 2000,
                       kServiceNs},
    LearnableParameter{"nic.receive_line_ns", "responder unit, each further line of payload", ParameterGroup::responder,
                       0, 200, 2, false, kLarge},
    LearnableParameter{"nic.read_request_ns", "responder unit, each READ in addition", ParameterGroup::responder, 0,
                       1000, kSomeNs, false, kRead},
    LearnableParameter{"nic.read_response_ns", "mean latency of a READ's response", ParameterGroup::path, 0, 3000,
                       kPathNs, false, kRead},
    LearnableParameter{"nic.atomic_packet_ns", "responder unit, each atomic in addition", ParameterGroup::responder, 0,
                       3000, kServiceNs, false, kAtomic},
    LearnableParameter{"nic.atomic_operation_ns", "time of an atomic's slot", ParameterGroup::responder, 0, 2000,
                       kSomeNs, false, kAtomic},
    LearnableParameter{"nic.transmit_ns", "latency from a unit to the port", ParameterGroup::path, 5, 3000, kPathNs},
    LearnableParameter{"nic.wqe_cache_bytes", "cache of WQEs that wait for transmission", ParameterGroup::caches, 2048,
                       4 << 20, 0, kInteger, kDeep},
    LearnableParameter{"nic.sent_wqe_cache_bytes", "cache of WQEs that wait for a response", ParameterGroup::caches,
                       2048, 4 << 20, 0, kInteger, kDeep | kReliable},
    LearnableParameter{"nic.reread_wqe_ns", "unit, each read of an evicted WQE", ParameterGroup::caches, 0, 3000,
                       kSomeNs, false, kDeep},
    LearnableParameter{"nic.qp_context_cache_bytes", "cache of QP contexts", ParameterGroup::caches, 1024, 16 << 20, 0,
                       kInteger, kManyQps},
    LearnableParameter{"nic.qp_responder_context_cache_bytes", "cache of responders' QP contexts",
                       ParameterGroup::caches, 1024, 16 << 20, 0, kInteger, kManyQps},
    LearnableParameter{"nic.input_buffer_bytes", "buffer for packets that arrive", ParameterGroup::caches, 8192,
                       4 << 20, 0, kInteger, kOverlap},
    LearnableParameter{"nic.near_qp_contexts", "QPs whose contexts are near the units", ParameterGroup::path, 1, 512, 0,
                       kInteger, kOverlap},
    LearnableParameter{"nic.far_qp_context_ns", "delay of another QP's context", ParameterGroup::path, 0, 2000, kPathNs,
                       false, kOverlap},
    LearnableParameter{"nic.qp_context_miss_ns", "time of a context miss, without its read", ParameterGroup::caches, 0,
                       3000, kSomeNs, false, kManyQps},
    LearnableParameter{"nic.ack_coalescing_messages", "messages that one ACK may cover", ParameterGroup::responder, 1,
                       64, 0, kInteger, kOverlap | kReliable},
    LearnableParameter{"fabric.switch_ns", "latency of the switch", ParameterGroup::path, 20, 3000, kPathNs},
    LearnableParameter{"fabric.port_share", "share of the port left to packets", ParameterGroup::port, 0.5, 1},
    LearnableParameter{"fabric.packet_gap_bytes", "idle bytes between packets", ParameterGroup::port, 0, 128, kSomeNs,
                       kInteger},
};

const Json* number_of(const Json& profile, std::string_view name) {
  const Json* const value = value_at(profile, std::string(name) + ".value");
  return value != nullptr && value->is_number() ? value : nullptr;
}

}  // namespace

std::span<const LearnableParameter> learnable_parameters() {
  return kLearnable;
}

bool may_change(const FitParameter& parameter, std::uint32_t properties) {
  return (parameter.needs & ~properties) == 0;
}

bool slows_when_larger(const FitParameter& parameter) {
  return parameter.name.ends_with("_ns") || parameter.name.ends_with("_gap_bytes");
}

bool counts_units(const FitParameter& parameter) {
  return parameter.name.ends_with("_units");
}

bool is_share(const FitParameter& parameter) {
  return parameter.name.ends_with("_share");
}

double coordinate(const FitParameter& parameter, double value) {
  return parameter.scale * std::log(value + parameter.offset);
}

double unbounded_value_at(const FitParameter& parameter, double x) {
  return std::exp(x / parameter.scale) - parameter.offset;
}

double value_at_coordinate(const FitParameter& parameter, double x) {
  const double value = unbounded_value_at(parameter, x);
  const bool nothing = std::abs(value) < kRounding * parameter.offset;  // exp(log(x)) is not exact
  return nothing ? std::clamp(0.0, parameter.low, parameter.high) : std::clamp(value, parameter.low, parameter.high);
}

std::vector<FitParameter> parameters_to_learn(const Json& profile) {
  std::vector<FitParameter> out;
  for (const LearnableParameter& each : kLearnable) {
    const Json* const value = number_of(profile, each.name);
    // 0 below the range says that the adapter has no such part, which another value cannot express.
    if (value == nullptr || (value->get<double>() == 0 && each.low > 0)) continue;
    const double start = std::clamp(value->get<double>(), each.low, each.high);
    // A shorter start counts as about this long: known profiles have 0 for times that are hundreds of ns in others.
    const double short_time = std::min(each.offset, std::max(kSomeNs, each.offset / 3));
    out.push_back({.name = std::string(each.name),
                   .start = start,
                   .low = each.low,
                   .high = each.high,
                   .offset = each.offset,
                   .scale = (start + each.offset) / (start + short_time),
                   .integer = each.integer,
                   .needs = each.needs,
                   .group = each.group});
  }
  return out;
}

double rounded_value(const FitParameter& parameter, double value) {
  return parameter.integer ? std::round(value) : std::stod(fmt::format("{:.5g}", value));
}

Json with_values(Json profile, const std::vector<FitParameter>& parameters, const std::vector<double>& values) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::size_t dot = parameters[i].name.rfind('.');
    const double value = rounded_value(parameters[i], values[i]);
    std::string path = "/" + parameters[i].name.substr(0, dot) + "/" + parameters[i].name.substr(dot + 1) + "/value";
    std::ranges::replace(path, '.', '/');
    profile[nlohmann::json_pointer<std::string>(path)] =
        parameters[i].integer ? Json(static_cast<std::int64_t>(value)) : Json(value);
  }
  return profile;
}

}  // namespace verbscope
