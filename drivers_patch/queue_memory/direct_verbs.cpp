#include "drivers_patch/queue_memory/direct_verbs.hpp"

#include <dlfcn.h>
#include <infiniband/mlx4dv.h>
#include <infiniband/mlx5dv.h>

#include <cerrno>

namespace verbscope::driver {
namespace {

// Searches global symbols first, then the provider itself, because libibverbs opens its providers with local symbols.
void* find_function(const char* name, const char* library) {
  if (void* const found = dlsym(RTLD_DEFAULT, name)) return found;
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return nullptr;
  void* const found = dlsym(loaded, name);
  dlclose(loaded);  // it stays loaded as long as its contexts
  return found;
}

int ask_mlx5(const DirectVerbs& direct, ibv_qp& qp, SendQueue& queue) {
  mlx5dv_qp told{};
  mlx5dv_obj object{};
  object.qp = {&qp, &told};
  if (const int error = direct.mlx5_init_obj(&object, MLX5DV_OBJ_QP); error != 0) return error;
  queue.memory = static_cast<const std::byte*>(told.sq.buf);
  queue.slots = told.sq.wqe_cnt;
  queue.slot_bytes = told.sq.stride;
  queue.doorbell_record = told.dbrec;
  return 0;
}

int ask_mlx4(const DirectVerbs& direct, ibv_qp& qp, SendQueue& queue) {
  constexpr int kMinShift = 6, kMaxShift = 16;
  mlx4dv_qp told{};
  mlx4dv_obj object{};
  object.qp = {&qp, &told};
  if (const int error = direct.mlx4_init_obj(&object, MLX4DV_OBJ_QP); error != 0) return error;
  if (told.buf.buf == nullptr || told.sq.offset < 0) return EINVAL;
  if (told.sq.wqe_shift < kMinShift || told.sq.wqe_shift > kMaxShift) return EINVAL;
  const auto offset = static_cast<std::uint64_t>(told.sq.offset);
  if (offset + (std::uint64_t{told.sq.wqe_cnt} << told.sq.wqe_shift) > told.buf.length) return EINVAL;
  queue.memory = static_cast<const std::byte*>(told.buf.buf) + offset;
  queue.slots = told.sq.wqe_cnt;
  queue.slot_bytes = 1u << told.sq.wqe_shift;
  return 0;
}

}  // namespace

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
  SendQueue told{.family = family};
  const int error = family == NicFamily::mlx5 ? ask_mlx5(direct, qp, told) : ask_mlx4(direct, qp, told);
  if (error != 0) return error;
  if (!is_queue(told)) return EINVAL;
  queue = told;
  return 0;
}

}  // namespace verbscope::driver
