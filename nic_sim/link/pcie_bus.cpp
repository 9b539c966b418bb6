#include "nic_sim/link/pcie_bus.hpp"

#include <algorithm>

namespace verbscope::sim {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Splits a transfer of [address, address + bytes) into requests of the maximum size, counted from the start of the
// transfer, as an adapter does. Calls `visit` with address and length of each.
template <class Visit>
void cut_requests(std::uint64_t address, std::uint64_t bytes, Bytes largest, Visit&& visit) {
  for (; bytes > largest.value; bytes -= largest.value) {
    visit(address, largest.value);
    address += largest.value;
  }
  if (bytes > 0) visit(address, bytes);
}

std::uint64_t count_requests(std::uint64_t address, std::uint64_t bytes, Bytes largest) {
  std::uint64_t count = 0;
  cut_requests(address, bytes, largest, [&count](std::uint64_t, std::uint64_t) { ++count; });
  return count;
}

// Counts the completions of one request.
std::uint64_t count_completions(std::uint64_t address, std::uint64_t bytes, const PcieLink& link) {
  const std::uint64_t begin = address & ~(link.rcb.value - 1);
  return divide_up(address + bytes - begin, link.completion.value);
}

// The cache lines that [address, address + bytes) touches, and those that it covers completely.
std::uint64_t lines_touched(std::uint64_t address, std::uint64_t bytes) {
  return (address + bytes - 1) / kCacheLine.value - address / kCacheLine.value + 1;
}
std::uint64_t lines_covered(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t begin = divide_up(address, kCacheLine.value);
  const std::uint64_t end = (address + bytes) / kCacheLine.value;
  return end > begin ? end - begin : 0;
}

}  // namespace

PcieBus::PcieBus(Engine& engine, const Profile& profile, std::uint64_t seed)
    : engine_(engine),
      link_(profile.wire.pcie),
      host_(profile.host),
      time_to_nic_(BytesPerSecond{profile.wire.pcie.bandwidth().value * profile.link.tlp_share}),
      time_to_host_(BytesPerSecond{profile.wire.pcie.bandwidth().value * profile.link.host_share}),
      propagation_(profile.link.propagation),
      mmio_gap_(profile.link.mmio_gap),
      turn_of_write_(time_to_host(link_.request_header.value + link_.mps.value)),
      credit_window_(time_to_host(profile.link.posted_credits.value)),
      tags_(profile.link.read_tags),
      free_tags_(tags_),
      random_(seed),
      free_read_(kNone),
      first_waiting_(kNone),
      last_waiting_(kNone) {}

void PcieBus::count_to_nic(std::uint64_t header, std::uint64_t payload) {
  counts_.bytes_to_nic += header + payload;
  counts_.payload_bytes_to_nic += payload;
}

void PcieBus::count_to_host(std::uint64_t header, std::uint64_t payload) {
  counts_.bytes_to_host += header + payload;
  counts_.payload_bytes_to_host += payload;
}

void PcieBus::dma_read(std::uint64_t address, std::uint64_t bytes, Engine::Action done, void* object,
                       std::uint64_t argument, Ordered ordered) {
  std::uint32_t index = free_read_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(reads_.size());
    reads_.emplace_back();
  } else {
    free_read_ = reads_[index].next;
  }
  // A read that needs more tags than exist takes all of them: its requests follow one another.
  const std::uint64_t requests = count_requests(address, bytes, link_.mrrs);
  const std::uint64_t tags = std::min(requests, tags_);
  reads_[index] = Read{address, bytes, requests, tags, done, object, argument, kNone, ordered};
  if (first_waiting_ == kNone && tags <= free_tags_) {
    start(index);
  } else {
    (first_waiting_ == kNone ? first_waiting_ : reads_[last_waiting_].next) = index;
    last_waiting_ = index;
  }
}

void PcieBus::start(std::uint32_t index) {
  const Read& read = reads_[index];
  free_tags_ -= read.tags;
  tags_held_ -= engine_.now() * static_cast<std::int64_t>(read.tags);
  const std::uint64_t header = read.requests * link_.request_header.value;
  counts_.tlps_to_host += read.requests;
  counts_.dma_read_lines += lines_touched(read.address, read.bytes);
  count_to_host(header, 0);
  const Picos time = time_to_host(header);
  const Picos sent = send_requests(read.requests, time, read.ordered);
  Picos latency = host_.memory_read;
  if (host_.memory_read_jitter.count() > 0) {
    latency +=
        Picos(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(host_.memory_read_jitter.count()))));
  }
  if (host_.slow_read_probability > 0 && random_.uniform() < host_.slow_read_probability)
    latency += host_.slow_read_extra;
  tags_held_idle_ += (time + propagation_ + latency) * static_cast<std::int64_t>(read.tags);
  engine_.schedule(sent + propagation_ + latency, &at_memory, this, index);
}

Picos PcieBus::send_requests(std::uint64_t requests, Picos time, Ordered ordered) {
  const Picos behind_all = to_host_.take(engine_.now(), time);
  const Picos in_turns =
      std::max(engine_.now(), requests_sent_) + time + turn_of_write_ * static_cast<std::int64_t>(requests);
  requests_sent_ = std::min(behind_all, in_turns);
  if (ordered == Ordered::no) return requests_sent_;
  ordered_sent_ = std::max(requests_sent_, ordered_sent_ + time);
  return ordered_sent_;
}

void PcieBus::at_memory(void* object, std::uint64_t index) {
  PcieBus& bus = *static_cast<PcieBus*>(object);
  const Read& read = bus.reads_[index];
  // Each request is completed separately.
  std::uint64_t completions = 0;
  cut_requests(read.address, read.bytes, bus.link_.mrrs,
               [&completions, &bus](std::uint64_t address, std::uint64_t bytes) {
                 completions += count_completions(address, bytes, bus.link_);
               });
  const std::uint64_t header = completions * bus.link_.completion_header.value;
  bus.counts_.tlps_to_nic += completions;
  bus.count_to_nic(header, read.bytes);
  const Picos time = bus.time_to_nic(header + read.bytes);
  const Picos sent = bus.to_nic_.take(bus.engine_.now(), time);
  bus.tags_held_idle_ += (time + bus.propagation_) * static_cast<std::int64_t>(read.tags);
  bus.engine_.schedule(sent + bus.propagation_, &completed, &bus, index);
}

void PcieBus::completed(void* object, std::uint64_t index) {
  PcieBus& bus = *static_cast<PcieBus*>(object);
  const Read read = bus.reads_[index];
  bus.reads_[index].next = bus.free_read_;
  bus.free_read_ = static_cast<std::uint32_t>(index);
  bus.free_tags_ += read.tags;
  bus.tags_held_ += bus.engine_.now() * static_cast<std::int64_t>(read.tags);
  while (bus.first_waiting_ != kNone && bus.reads_[bus.first_waiting_].tags <= bus.free_tags_) {
    const std::uint32_t next = bus.first_waiting_;
    bus.first_waiting_ = bus.reads_[next].next;
    bus.start(next);
  }
  read.done(read.object, read.argument);
}

Picos PcieBus::dma_write(std::uint64_t address, std::uint64_t bytes, Ordered ordered, Picos ago) {
  const std::uint64_t requests = count_requests(address, bytes, link_.mps);
  const std::uint64_t header = requests * link_.request_header.value;
  const std::uint64_t covered = lines_covered(address, bytes);
  counts_.tlps_to_host += requests;
  counts_.dma_write_full_lines += covered;
  counts_.dma_write_partial_lines += lines_touched(address, bytes) - covered;
  count_to_host(header, bytes);
  const Picos sent = to_host_.take(engine_.now() - ago, time_to_host(header + bytes));
  if (ordered == Ordered::yes) ordered_sent_ = sent;
  return sent + write_latency();
}

Picos PcieBus::posted_credit_at() const {
  return std::max(engine_.now(), to_host_.free_at() - credit_window_);
}

Picos PcieBus::mmio_write(std::uint64_t bytes) {
  (bytes == kCacheLine.value ? counts_.mmio_wc_lines : counts_.mmio_doorbells) += 1;
  counts_.tlps_to_nic += 1;
  count_to_nic(link_.request_header.value, bytes);
  const Picos time = time_to_nic(link_.request_header.value + bytes) + mmio_gap_;
  mmio_busy_ += time;
  return to_nic_.take(engine_.now(), time);
}

}  // namespace verbscope::sim
