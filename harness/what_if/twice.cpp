#include "harness/what_if/twice.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace verbscope {
namespace {

// The parameters ("section.key") that make a resource's capacity. What each takes of whom is told beside its member in
// nic_sim/profile/profile.hpp.
struct Twice {
  Resource resource;
  std::vector<std::string_view> halved{}, doubled{};
};

const std::vector<Twice>& table() {
  static const std::vector<Twice> twice = {
      {.resource = Resource::pcie_to_nic, .halved = {"link.mmio_gap_ns"}, .doubled = {"wire.pcie_lanes"}},
      {.resource = Resource::wire_out, .doubled = {"wire.port_gbit_per_s"}},
      {.resource = Resource::requester_unit,
       .halved = {"nic.doorbell_wqe_ns", "nic.blueflame_wqe_ns", "nic.wqe_block_ns", "nic.gather_ns",
                  "nic.next_packet_ns", "nic.reread_wqe_ns"}},
      // A responder cuts responses into packets, and reads WQEs again that wait for them.
      {.resource = Resource::responder_unit,
       .halved = {"nic.receive_packet_ns", "nic.receive_dma_ns", "nic.receive_line_ns", "nic.receive_inline_ns",
                  "nic.read_request_ns", "nic.atomic_packet_ns", "nic.handle_ack_ns", "nic.handle_response_ns",
                  "nic.next_packet_ns", "nic.reread_wqe_ns"}},
      // A core has its memory with it: what a thread waits for there is its time too.
      {.resource = Resource::cpu,
       .halved = {"host.post_call_ns", "host.post_wqe_ns", "host.wc_line_ns", "host.doorbell_ns", "host.poll_call_ns",
                  "host.poll_cqe_ns", "host.poll_memory_ns", "host.atomic_add_ns", "host.post_recv_call_ns",
                  "host.post_recv_wqe_ns", "host.dram_ns", "host.register_call_ns", "host.register_page_ns"}},
      // What a lock takes: it comes over, and a thread posts while it holds it.
      {.resource = Resource::driver_lock,
       .halved = {"host.line_transfer_ns", "host.post_call_ns", "host.post_wqe_ns", "host.wc_line_ns",
                  "host.doorbell_ns"}},
      {.resource = Resource::shared_line, .halved = {"host.line_transfer_ns", "host.atomic_add_ns"}},
      // An atomic's slot is held from the read over PCIe to the write.
      {.resource = Resource::atomic_slot,
       .halved = {"nic.atomic_operation_ns", "host.memory_read_ns", "host.memory_read_jitter_ns",
                  "link.propagation_ns"}},
      {.resource = Resource::dma_reads, .doubled = {"link.read_tags"}},
      {.resource = Resource::wqe_fetch, .doubled = {"nic.wqe_fetch_ahead_bytes"}},
      {.resource = Resource::qp_context_cache,
       .doubled = {"nic.qp_context_cache_bytes", "nic.qp_responder_context_cache_bytes"}},
      {.resource = Resource::translation_cache, .doubled = {"nic.translation_cache_bytes"}},
      {.resource = Resource::wqe_cache, .doubled = {"nic.wqe_cache_bytes", "nic.sent_wqe_cache_bytes"}},
  };
  return twice;
}

const Twice* row_of(Resource resource) {
  const auto found = std::ranges::find(table(), resource, &Twice::resource);
  return found == table().end() ? nullptr : &*found;
}

// The value of "section.key" in the profile; null when it has none.
Json* value_in(Json& profile, std::string_view name) {
  const std::string section(name.substr(0, name.find('.'))), key(name.substr(name.find('.') + 1));
  if (!profile.contains(section) || !profile[section].contains(key)) return nullptr;
  Json& value = profile[section][key]["value"];
  return value.is_number() ? &value : nullptr;
}

void halve(Json& value) {
  value = value.get<double>() / 2;
}

void twice_of(Json& value) {
  if (value.is_number_integer()) {
    value = value.get<std::int64_t>() * 2;
  } else {
    value = value.get<double>() * 2;
  }
}

}  // namespace

bool can_double(const Json& profile, Resource resource) {
  const Twice* row = row_of(resource);
  if (row == nullptr) return false;
  Json copy = profile;
  const auto counts = [&copy](std::string_view name) {
    const Json* value = value_in(copy, name);
    return value != nullptr && value->get<double>() > 0;
  };
  return std::ranges::any_of(row->halved, counts) || std::ranges::any_of(row->doubled, counts);
}

Json profile_with_twice(Json profile, const std::vector<Resource>& resources) {
  std::set<std::string_view> halved, doubled;
  for (const Resource resource : resources) {
    const Twice* row = row_of(resource);
    if (row == nullptr) continue;
    halved.insert(row->halved.begin(), row->halved.end());
    doubled.insert(row->doubled.begin(), row->doubled.end());
  }
  for (const std::string_view name : halved) {
    if (Json* value = value_in(profile, name)) halve(*value);
  }
  for (const std::string_view name : doubled) {
    if (Json* value = value_in(profile, name)) twice_of(*value);
  }
  return profile;
}

Json twice_as_fast(Json profile) {
  for (const char* section : {"host", "link", "nic", "fabric"}) {
    if (!profile.contains(section)) continue;
    for (auto& [key, parameter] : profile[section].items()) {
      if (!key.ends_with("_ns")) continue;
      if (Json* value = value_in(profile, std::string(section) + "." + key)) halve(*value);
    }
  }
  for (const char* name : {"wire.pcie_lanes", "wire.port_gbit_per_s"}) {
    if (Json* value = value_in(profile, name)) twice_of(*value);
  }
  return profile;
}

}  // namespace verbscope
