#include "drivers_patch/queue_memory/send_queue.hpp"

#include <dlfcn.h>
#include <endian.h>
#include <infiniband/mlx4dv.h>
#include <infiniband/mlx5dv.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "wire/nic_family.hpp"

namespace verbscope::driver {
namespace {

constexpr std::uint32_t kMaxSlots = 65536;
constexpr std::uint32_t kMaxSlotBytes = 65536;

// Another thread's driver may write at the same time, under a lock that is not accessible here. Callers detect that
// afterwards. A plain volatile read, because ThreadSanitizer would report an atomic one in spite of the attribute.
template <class Word>
[[gnu::noinline, gnu::no_sanitize_thread]] Word read_shared(const void* address) {
  return *static_cast<const volatile Word*>(address);
}

bool owner_of(const SendQueue& queue, std::uint32_t slot) {
  const auto* const first = queue.memory + std::uint64_t{slot} * queue.slot_bytes;
  return be32toh(read_shared<std::uint32_t>(first)) >> 31 != 0;
}

// True if an mlx4 driver has written everything before `position`, but not `position`.
bool is_next(const SendQueue& queue, std::uint32_t position) {
  const std::uint32_t before = position - 1;  // for position 0: the last of an odd round
  return owner_of(queue, position % queue.slots) != owner_at(queue, position) &&
         owner_of(queue, before % queue.slots) == owner_at(queue, before);
}

// From the queue's begin to where the driver writes next, owner bits are equal.
std::uint32_t find_next(const SendQueue& queue) {
  const bool owner = owner_of(queue, 0);
  std::uint32_t slot = 1;
  while (slot < queue.slots && owner_of(queue, slot) == owner) ++slot;
  return (slot + (owner ? queue.slots : 0)) % (2 * queue.slots);
}

// Searches global symbols first, then the provider itself, because libibverbs opens its providers with local symbols.
void* find_function(const char* name, const char* library) {
  if (void* const found = dlsym(RTLD_DEFAULT, name)) return found;
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return nullptr;
  void* const found = dlsym(loaded, name);
  dlclose(loaded);  // it stays loaded as long as its contexts
  return found;
}

int query_mlx5(const DirectVerbs& direct, ibv_qp& qp, SendQueue& queue) {
  mlx5dv_qp info{};
  mlx5dv_obj object{};
  object.qp = {&qp, &info};
  if (const int error = direct.mlx5_init_obj(&object, MLX5DV_OBJ_QP); error != 0) return error;
  queue.memory = static_cast<const std::byte*>(info.sq.buf);
  queue.slots = info.sq.wqe_cnt;
  queue.slot_bytes = info.sq.stride;
  queue.doorbell_record = info.dbrec;
  return 0;
}

int query_mlx4(const DirectVerbs& direct, ibv_qp& qp, SendQueue& queue) {
  constexpr int kMinShift = 6, kMaxShift = 16;
  mlx4dv_qp info{};
  mlx4dv_obj object{};
  object.qp = {&qp, &info};
  if (const int error = direct.mlx4_init_obj(&object, MLX4DV_OBJ_QP); error != 0) return error;
  if (info.buf.buf == nullptr || info.sq.offset < 0) return EINVAL;
  if (info.sq.wqe_shift < kMinShift || info.sq.wqe_shift > kMaxShift) return EINVAL;
  const auto offset = static_cast<std::uint64_t>(info.sq.offset);
  if (offset + (std::uint64_t{info.sq.wqe_cnt} << info.sq.wqe_shift) > info.buf.length) return EINVAL;
  queue.memory = static_cast<const std::byte*>(info.buf.buf) + offset;
  queue.slots = info.sq.wqe_cnt;
  queue.slot_bytes = 1u << info.sq.wqe_shift;
  return 0;
}

}  // namespace

bool is_queue(const SendQueue& queue) {
  const auto multiple = [](std::uint64_t value) { return value % kWqeBlock.value == 0; };
  const bool blocks = facts(queue.family).fixed_slots || queue.slot_bytes == kWqeBlock.value;
  const bool counted = facts(queue.family).send_doorbell_record.value == 0 || queue.doorbell_record != nullptr;
  return queue.memory != nullptr && std::has_single_bit(queue.slots) && queue.slots <= kMaxSlots &&
         queue.slot_bytes > 0 && queue.slot_bytes <= kMaxSlotBytes && multiple(queue.slot_bytes) &&
         multiple(reinterpret_cast<std::uintptr_t>(queue.memory)) && blocks && counted;
}

std::uint32_t next_position(const SendQueue& queue, std::uint32_t guess) {
  if (queue.family == NicFamily::mlx5) {
    return be32toh(read_shared<std::uint32_t>(&queue.doorbell_record[MLX5_SND_DBR])) & 0xffff;
  }
  guess %= 2 * queue.slots;
  return is_next(queue, guess) ? guess : find_next(queue);
}

std::uint32_t position_behind(const SendQueue& queue, std::uint32_t position, std::uint32_t blocks) {
  if (queue.family == NicFamily::mlx5) return (position + blocks) & 0xffff;
  return (position + 1) % (2 * queue.slots);
}

void copy_from(const SendQueue& queue, std::uint32_t position, std::size_t skip, std::span<std::byte> copy) {
  std::uint64_t from = std::uint64_t{position % queue.slots} * queue.slot_bytes + skip;
  for (std::size_t to = 0; to < copy.size(); to += sizeof(std::uint64_t), from += sizeof(std::uint64_t)) {
    const auto word = read_shared<std::uint64_t>(queue.memory + from % queue.bytes());
    std::memcpy(&copy[to], &word, sizeof word);
  }
}

DirectVerbs find_direct_verbs() {
  DirectVerbs direct;
  direct.mlx4_init_obj =
      reinterpret_cast<decltype(direct.mlx4_init_obj)>(find_function("mlx4dv_init_obj", "libmlx4.so.1"));
  direct.mlx5_init_obj =
      reinterpret_cast<decltype(direct.mlx5_init_obj)>(find_function("mlx5dv_init_obj", "libmlx5.so.1"));
  return direct;
}

int find_send_queue(const DirectVerbs& direct, NicFamily family, ibv_qp& qp, SendQueue& queue) {
  if (!direct.has(family)) return ENOSYS;
  SendQueue candidate{.family = family};
  const int error = family == NicFamily::mlx5 ? query_mlx5(direct, qp, candidate) : query_mlx4(direct, qp, candidate);
  if (error != 0) return error;
  if (!is_queue(candidate)) return EINVAL;
  queue = candidate;
  return 0;
}

}  // namespace verbscope::driver
