#include "simulate/preload/waiting.hpp"

#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

constinit std::array<Bucket, 1024> buckets{};

}  // namespace

int wait_on(const void* address, const void* word, std::uint32_t expected, std::int64_t deadline) {
  return ask(Operation::wait_on, address, word, expected, deadline);
}

Bucket& bucket_of(const void* address) {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  return buckets[reinterpret_cast<std::uint64_t>(address) * kGoldenRatio >> 54];
}

void wake(const void* address, std::uint32_t count) {
  Bucket& bucket = bucket_of(address);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (bucket.waiting.load(std::memory_order_seq_cst) == 0 || !simulated()) return;
  bucket.changes.fetch_add(1, std::memory_order_seq_cst);
  ask(Operation::wake, address, count);
}

}  // namespace verbscope::simulate
