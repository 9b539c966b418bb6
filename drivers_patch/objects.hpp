// Tells of contexts and their objects as they come and go: the control path. What the preloaded library sees by its
// symbols, a program whose control path is of another kind says by these functions (a benchmark on a simulated
// cluster). Each takes the lock of the control path, and none changes errno.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "drivers_patch/process.hpp"

namespace verbscope::driver {

// Makes room for what this process counts, in a new file at `path`, or without a file where it is empty. 0 or errno.
// Nothing is counted without it. Once a process.
int start_counting(const char* path, std::uint64_t capacity, const WireFacts& wire);
inline bool counting() {
  return process.arena.is_open();
}

struct ContextFacts {
  std::optional<NicFamily> family;  // of its adapter, as far as it is known
  bool sample_times = true;         // by the time stamp counter: not where the device has a time of its own
  // That its driver gives to QPs; none: as the environment asks mlx5 for.
  std::optional<DoorbellRegisters> registers{};
};

// From now on the data path of `context` is counted, and the extended calls that make objects. A context is attached
// once; one whose records have no room is left as it is.
void attach_context(ibv_context& context, const ContextFacts& facts);
// `context` is about to be closed, with all that is left of its objects: its calls are the provider's again, unless the
// program has put others there. A context that could not be closed is attached again.
void detach_context(ibv_context& context);

// `extended`: the QP's builder; null where it has none. Its calls are counted from now on. A QP of a context that is
// not attached is left alone, as are all objects below.
void attach_qp(ibv_qp& qp, ibv_qp_ex* extended, const ibv_qp_cap& cap, bool signal_all, std::uint32_t mtu);
// The path MTU of a connected QP is known, or it moves to a state in which its requests are lost.
void modify_qp(const ibv_qp& qp, const ibv_qp_attr& attr, int mask);
// The QP is about to be destroyed: another may have its address at once. Yields its record, null where it has none.
QpRecord* detach_qp(const ibv_qp& qp);
// It could not be destroyed, and is there as before.
void keep_qp(QpRecord* record);

void attach_cq(ibv_cq& cq);
// Its calls are counted from now on.
void attach_cq_ex(ibv_cq_ex& cq);
// As those of a QP.
CqRecord* detach_cq(const ibv_cq& cq);
void keep_cq(CqRecord* record);
void attach_srq(ibv_srq& srq, std::uint32_t max_sge);
SrqRecord* detach_srq(const ibv_srq& srq);
void keep_srq(SrqRecord* record);

// Memory of `length` bytes from `address` was registered, or is no longer.
void count_registration(const ibv_context& context, const void* address, std::size_t length);
void count_deregistration(const ibv_context& context);
void count_address_handle(const ibv_context& context);

// Records for objects that nobody told of, found when they are first used; null when there is no room.
QpRecord* adopt_qp(ibv_qp* qp, const WrappedContext& context);
CqRecord* adopt_cq(ibv_cq* cq, const WrappedContext& context);
SrqRecord* adopt_srq(ibv_srq* srq, const WrappedContext& context);

// The path MTU of a QP until it is told of its path.
inline constexpr std::uint32_t kLargestMtu = 4096;

// 256 to 4096.
constexpr std::uint32_t mtu_bytes_of(ibv_mtu mtu) {
  return 128u << static_cast<unsigned>(mtu);
}

}  // namespace verbscope::driver
