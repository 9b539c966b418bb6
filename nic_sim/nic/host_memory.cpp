#include "nic_sim/nic/host_memory.hpp"

#include <algorithm>

#include "nic_sim/host/thread.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

namespace {

// Bytes of a message that are prefetched; the processor's own prefetcher fetches the rest of a long one.
constexpr std::uint64_t kMaxAhead = 256;

}  // namespace

void HostMemory::add(Region& region) {
  const auto place = std::find(regions_.begin(), regions_.end(), nullptr);
  const auto index = static_cast<std::uint32_t>(place - regions_.begin());
  if (place == regions_.end()) {
    regions_.push_back(&region);
  } else {
    *place = &region;
  }
  const std::uint32_t tag = ++registrations_ & ((1u << kKeyTagBits) - 1);
  region.key = (index + 1) << kKeyTagBits | tag;
}

void HostMemory::remove(const Region& region) {
  regions_[(region.key >> kKeyTagBits) - 1] = nullptr;
}

void HostMemory::drop_translations(SimMr& mr) {
  for (Translation& page : mr.pages) translations_.drop(page);
}

const Region* HostMemory::find(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const {
  const Region* const region = of_index(key);
  return region != nullptr && region->key == key && region->holds(address, bytes) ? region : nullptr;
}

std::uint64_t HostMemory::missing_translations(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) {
  const Region* region = find(key, address, bytes);
  if (region == nullptr || bytes == 0) return 0;
  const std::byte* const memory = region->at(address);
  prefetch(memory, std::min(bytes, kMaxAhead));  // the program's memory, which the NIC will read or write soon
  SimMr& mr = *region->translated_by;
  const std::uint64_t begin = mr.page_of(memory);
  const std::uint64_t end = mr.page_of(memory + bytes - 1) + 1;
  std::uint64_t missing = 0;
  for (std::uint64_t page = begin; page < end; ++page) missing += translations_.use(mr.pages[page]) ? 0 : 1;
  counts_.translation_hits += end - begin - missing;
  counts_.translation_misses += missing;
  return missing;
}

void PayloadWriter::write(std::uint64_t address, Packet& packet, Picos ago) {
  packet.remote_address = address;
  packet.freed_by_writer = true;
  ++under_way_;
  const Picos visible = bus_.dma_write(address, packet.payload, Ordered::yes, ago);
  engine_.schedule(visible, &written, this, as_argument(packet));
}

void PayloadWriter::written(void* object, std::uint64_t argument) {
  PayloadWriter& self = *static_cast<PayloadWriter*>(object);
  Packet& packet = as_packet(argument);
  --self.under_way_;
  // The region may have been deregistered meanwhile.
  const Region* const region = self.memory_.find(packet.rkey, packet.remote_address, packet.payload);
  if (region != nullptr) {
    HostMemory::write(*region, packet.remote_address, packet.data(), packet.payload);
    self.watch_.written(reinterpret_cast<std::uint64_t>(region->at(packet.remote_address)), packet.payload,
                        [](SimThread& thread) { thread.memory_written(); });
  }
  self.packets_.give_back(packet);
}

}  // namespace verbscope::sim
