#include "drivers_patch/preload/start.hpp"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "drivers_patch/objects.hpp"
#include "drivers_patch/preload/provider_calls.hpp"
#include "drivers_patch/process.hpp"

namespace verbscope::driver {
namespace {

ibv_qp* traced_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const ibv_qp_cap asked = attr->cap;
  ibv_qp* const qp = find_context(context)->create_qp_ex(context, attr);
  if (qp == nullptr) return qp;
  const ErrnoGuard errno_guard;
  const bool builds = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  ibv_qp_ex* const builder = builds ? VERBSCOPE_PROVIDER(ibv_qp_to_qp_ex, "IBVERBS_1.6")(qp) : nullptr;
  attach_qp(*qp, builder, asked, attr->sq_sig_all != 0, kInitialMtu);
  return qp;
}

ibv_cq_ex* traced_create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  ibv_cq_ex* const cq = find_context(context)->create_cq_ex(context, attr);
  if (cq != nullptr) attach_cq_ex(*cq);
  return cq;
}

ibv_srq* traced_create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const std::uint32_t max_sge = attr->attr.max_sge;
  ibv_srq* const srq = find_context(context)->create_srq_ex(context, attr);
  if (srq != nullptr) attach_srq(*srq, max_sge);
  return srq;
}

// Wraps the creation of QPs, completion queues and shared receive queues that programs call through the table of a
// context, not through symbols of libibverbs, where the provider implements it.
void wrap_extended_calls(ibv_context& context) {
  WrappedContext* const known = find_context(&context);
  if (known == nullptr) return;
  if (verbs_context* const table = verbs_get_ctx_op(&context, create_qp_ex)) {
    known->create_qp_ex = table->create_qp_ex;
    table->create_qp_ex = &traced_create_qp_ex;
  }
  if (verbs_context* const table = verbs_get_ctx_op(&context, create_cq_ex)) {
    known->create_cq_ex = table->create_cq_ex;
    table->create_cq_ex = &traced_create_cq_ex;
  }
  if (verbs_context* const table = verbs_get_ctx_op(&context, create_srq_ex)) {
    known->create_srq_ex = table->create_srq_ex;
    table->create_srq_ex = &traced_create_srq_ex;
  }
}

constexpr std::uint64_t kCapacity = std::uint64_t{1} << 30;  // only used pages take memory

struct Settings {
  char folder[PATH_MAX] = {};
  std::optional<NicFamily> asked;
};
Settings settings;

std::optional<NicFamily> family_called(std::string_view name) {
  for (const FamilyFacts& family : kFamilies) {
    if (family.name == name) return family.value;
  }
  return std::nullopt;
}

// The time in the name distinguishes programs before and after exec(), which have the same process id.
void name_file(char (&path)[PATH_MAX + 64]) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(path, sizeof path, "%s/%ld-%lld%09ld%s", settings.folder, static_cast<long>(getpid()),
           static_cast<long long>(now.tv_sec), now.tv_nsec, kExtension);
}

// Held while counting starts, and during a fork, so that no child inherits it locked.
pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

void before_fork() {
  pthread_mutex_lock(&starting);
  lock_for_fork();
}
void after_fork() {
  unlock_in_parent();
  pthread_mutex_unlock(&starting);
}
void in_child() {
  char path[PATH_MAX + 64];
  name_file(path);
  restart_in_child(path);
  pthread_mutex_unlock(&starting);
}
[[gnu::constructor]] void watch_forks() {
  pthread_atfork(before_fork, after_fork, in_child);
}

void note_program() {
  TraceHeader& header = process.arena.header();
  if (const ssize_t length = readlink("/proc/self/exe", header.program, sizeof header.program - 1); length < 0) {
    header.program[0] = '\0';
  }
}

// Called once per process. On errors the program runs uncounted.
void start(const ibv_context& first) {
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr || std::strlen(folder) >= sizeof settings.folder) return;
  std::strcpy(settings.folder, folder);
  const char* const nic = std::getenv(kNicVariable);
  const std::optional<NicFamily> own = family_of_device(first.device);
  settings.asked = family_called(nic == nullptr ? "" : nic);
  const std::optional<NicFamily> family = settings.asked ? settings.asked : own;
  WireFacts wire = usual_facts(family.value_or(NicFamily::mlx5), family != own);
  wire.known = family.has_value();
  char path[PATH_MAX + 64];
  name_file(path);
  if (start_counting(path, kCapacity, wire) != 0) return;
  note_program();
  if (std::getenv(kVerifyVariable) != nullptr) process.find_direct = &find_direct_verbs;
  process.query_qp = VERBSCOPE_PROVIDER(ibv_query_qp, "IBVERBS_1.1");
}

}  // namespace

void ensure_attached(ibv_context& context) {
  static bool tried = false;
  const ErrnoGuard errno_guard;
  pthread_mutex_lock(&starting);
  if (!tried) start(context);
  tried = true;
  pthread_mutex_unlock(&starting);
  if (!counting() || find_context(&context) != nullptr) return;
  attach_context(context, {.family = family_of_device(context.device)});
  wrap_extended_calls(context);
}

}  // namespace verbscope::driver
