#include "nic_sim/nic/host_memory.hpp"

#include <algorithm>

#include "nic_sim/host/thread.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

namespace {

// A memory key is an index and 8 bits that change with each registration, so that an outdated key is detected.
constexpr std::uint32_t kKeyTagBits = 8;

// Bytes of a message that are prefetched; the processor's own prefetcher fetches the rest of a long one.
constexpr std::uint64_t kMaxAhead = 256;

}  // namespace

std::uint32_t HostMemory::add(SimMr& mr) {
  const auto place = std::find(mrs_.begin(), mrs_.end(), nullptr);
  const auto index = static_cast<std::uint32_t>(place - mrs_.begin());
  if (place == mrs_.end()) {
    mrs_.push_back(&mr);
  } else {
    *place = &mr;
  }
  const std::uint32_t tag = ++registrations_ & ((1u << kKeyTagBits) - 1);
  return (index + 1) << kKeyTagBits | tag;
}

void HostMemory::remove(SimMr& mr) {
  mrs_[(mr.lkey >> kKeyTagBits) - 1] = nullptr;
  for (Translation& page : mr.pages) translations_.drop(page);
}

SimMr* HostMemory::find(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const {
  const std::uint32_t index = (key >> kKeyTagBits) - 1;
  SimMr* mr = index < mrs_.size() ? mrs_[index] : nullptr;
  return mr != nullptr && mr->lkey == key && mr->holds(address, bytes) ? mr : nullptr;
}

std::uint64_t HostMemory::missing_translations(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) {
  SimMr* mr = find(key, address, bytes);
  if (mr == nullptr || bytes == 0) return 0;
  prefetch(address, std::min(bytes, kMaxAhead));  // the program's memory, which the NIC will read or write soon
  const std::uint64_t first_page = reinterpret_cast<std::uint64_t>(mr->addr) >> mr->page_bits;
  const std::uint64_t begin = (address >> mr->page_bits) - first_page;
  const std::uint64_t end = ((address + bytes - 1) >> mr->page_bits) - first_page + 1;
  std::uint64_t missing = 0;
  for (std::uint64_t page = begin; page < end; ++page) missing += translations_.use(mr->pages[page]) ? 0 : 1;
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
  if (self.memory_.find(packet.rkey, packet.remote_address, packet.payload) != nullptr) {
    self.memory_.write(packet.remote_address, packet.data(), packet.payload);
    self.watch_.written(packet.remote_address, packet.payload, [](SimThread& thread) { thread.memory_written(); });
  }
  self.packets_.give_back(packet);
}

}  // namespace verbscope::sim
