// The control path: registers contexts and their objects when they are created and removes them when they are
// destroyed. Called by the preloaded library's wrappers, and directly by programs without them (a benchmark on a
// simulated cluster). Each function takes process.control, and none changes errno.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "drivers_patch/process.hpp"
#include "wire/nic_family.hpp"

namespace verbscope::driver {

// Allocates the memory for this process's counts: in a new file at `path`, or without a file if `path` is empty.
// Returns 0 or errno. Until this call nothing is counted. Call it once per process.
int start_counting(const char* path, std::uint64_t capacity, const WireFacts& wire);
inline bool counting() {
  return process.arena.is_open();
}

struct ContextFacts {
  std::optional<NicFamily> family;  // of its adapter, if known
  bool sample_times = true;         // by the time stamp counter; false if the device has its own clock
  // The doorbell registers that its driver gives to QPs. None: as the environment configures mlx5.
  std::optional<DoorbellRegisters> registers{};
};

// Wraps the data path of `context` and counts it from now on. Wrapping a context again has no effect. A context whose
// records find no room stays as it is.
void attach_context(ibv_context& context, const ContextFacts& facts);
// Call before `context` is closed. Removes its remaining objects and restores the provider's calls, unless the program
// has replaced them. If closing fails, attach the context again.
void detach_context(ibv_context& context);

// `extended`: the QP's builder, or null; its calls are counted from now on. QPs of contexts that are not attached are
// ignored, like all objects below.
void attach_qp(ibv_qp& qp, ibv_qp_ex* extended, const ibv_qp_cap& cap, bool signal_all, std::uint32_t mtu);
// Records the path MTU and max_rd_atomic. A move to RESET or ERR, which loses requests, ends the QP's time samples.
void modify_qp(const ibv_qp& qp, const ibv_qp_attr& attr, int mask);
// Call before the QP is destroyed, because another QP may get its address at once. Returns its record, or null.
QpRecord* detach_qp(const ibv_qp& qp);
// Undoes detach_qp() if the QP could not be destroyed.
void restore_qp(QpRecord* record);

void attach_cq(ibv_cq& cq);
// Counts the calls of the extended interface, too.
void attach_cq_ex(ibv_cq_ex& cq);
// As detach_qp() and restore_qp().
CqRecord* detach_cq(const ibv_cq& cq);
void restore_cq(CqRecord* record);
void attach_srq(ibv_srq& srq, std::uint32_t max_sge);
SrqRecord* detach_srq(const ibv_srq& srq);
void restore_srq(SrqRecord* record);

// Memory of `length` bytes from `address` was registered.
void count_registration(const ibv_context& context, const void* address, std::size_t length);
void count_deregistration(const ibv_context& context);
void count_address_handle(const ibv_context& context);

// Make records for objects that were not attached, at their first use. Return null if there is no room.
QpRecord* adopt_qp(ibv_qp* qp, const WrappedContext& context);
CqRecord* adopt_cq(ibv_cq* cq, const WrappedContext& context);
SrqRecord* adopt_srq(ibv_srq* srq, const WrappedContext& context);

// The assumed path MTU of a QP until modify_qp() sets it.
inline constexpr std::uint32_t kInitialMtu = 4096;

// 256 to 4096.
constexpr std::uint32_t mtu_bytes_of(ibv_mtu mtu) {
  return 128u << static_cast<unsigned>(mtu);
}

// Derived from the device's kernel driver; none if it is another's or has no driver. Allocates nothing.
std::optional<NicFamily> family_of_device(const ibv_device* device);

}  // namespace verbscope::driver
