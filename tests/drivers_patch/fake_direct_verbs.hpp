// A provider whose post writes WQEs, laid out by hand, into queues that a fake mlx5dv_init_obj and a fake
// mlx4dv_init_obj return. Tests plant its mistakes.
#pragma once

#include <infiniband/mlx4dv.h>
#include <infiniband/mlx5dv.h>

#include <array>
#include <bit>
#include <cerrno>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "tests/drivers_patch/fake_device.hpp"
#include "tests/drivers_patch/hand_laid.hpp"
#include "tests/drivers_patch/traced_rig.hpp"

namespace verbscope::driver {

// State of a QP in the fakes.
struct FakeQueue {
  HandQueue memory;
  std::mutex lock{};  // as drivers have one
  std::function<void(HandWqe&)> change = [](HandWqe&) {};
  std::function<void(HandQueue&, const HandWqe&)> write = [](HandQueue& to, const HandWqe& wqe) { to.lay(wqe); };
  bool rings = true;
  int refuses_after = -1;  // requests of a post; -1: accepts all
  int error = 0;           // of the direct-verbs function
  int asked = 0;           // number of calls of that function
};
inline std::map<const ibv_qp*, FakeQueue*> fake_queues;

inline int fake_mlx5_init_obj(mlx5dv_obj* object, std::uint64_t type) {
  EXPECT_EQ(type, std::uint64_t{MLX5DV_OBJ_QP});
  FakeQueue& fake = *fake_queues.at(object->qp.in);
  const SendQueue queue = fake.memory.queue();
  ++fake.asked;
  object->qp.out->sq = {const_cast<std::byte*>(queue.memory), queue.slots, queue.slot_bytes};
  object->qp.out->dbrec = const_cast<std::uint32_t*>(queue.doorbell_record);
  return fake.error;
}

// The send queue follows an unused receive queue of 4 KB.
inline int fake_mlx4_init_obj(mlx4dv_obj* object, std::uint64_t type) {
  EXPECT_EQ(type, std::uint64_t{MLX4DV_OBJ_QP});
  FakeQueue& fake = *fake_queues.at(object->qp.in);
  const SendQueue queue = fake.memory.queue();
  ++fake.asked;
  constexpr int kBefore = 4096;
  object->qp.out->buf.buf = const_cast<std::byte*>(queue.memory) - kBefore;
  object->qp.out->buf.length = kBefore + queue.bytes();
  object->qp.out->sq.wqe_cnt = queue.slots;
  object->qp.out->sq.wqe_shift = std::countr_zero(queue.slot_bytes);
  object->qp.out->sq.offset = kBefore;
  return fake.error;
}

inline DirectVerbs fake_direct_verbs() {
  return {.mlx4_init_obj = &fake_mlx4_init_obj, .mlx5_init_obj = &fake_mlx5_init_obj};
}

// A request as its driver would write it.
inline HandWqe hand_of(const ibv_send_wr& wr, bool datagram) {
  constexpr std::array<unsigned, 7> kNumbers{kWrite, kWriteImm, kSend, kSendImm, kRead, kCompareSwap, kFetchAdd};
  HandWqe wqe{.opcode = kNumbers.at(wr.opcode), .datagram = datagram, .remote_qpn = 5};
  wqe.signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  wqe.fence = (wr.send_flags & IBV_SEND_FENCE) != 0;
  wqe.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  wqe.one_sided = wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM;
  wqe.atomic = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  std::size_t length = 0;
  for (int i = 0; i < wr.num_sge; ++i) length += wr.sg_list[i].length;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    wqe.inline_data = some_bytes(length);
  } else {
    wqe.elements.assign(wr.sg_list, wr.sg_list + wr.num_sge);
  }
  return wqe;
}

inline int write_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  FakeQueue& fake = *fake_queues.at(qp);
  const std::lock_guard guard(fake.lock);
  int result = 0;
  for (int taken = 0; wr != nullptr; wr = wr->next, ++taken) {
    if (taken == fake.refuses_after) {
      *bad = wr;
      result = ENOMEM;
      break;
    }
    HandWqe wqe = hand_of(*wr, qp->qp_type == IBV_QPT_UD);
    fake.change(wqe);
    fake.write(fake.memory, wqe);
  }
  if (fake.rings) fake.memory.ring();
  return result;
}

// A QP on this provider, whose context is counted and verified.
struct VerifiedRig {
  explicit VerifiedRig(NicFamily of = NicFamily::mlx5, ibv_qp_type type = IBV_QPT_RC, bool signal_all = false,
                       DirectVerbs (*direct)() = &fake_direct_verbs)
      : VerifiedRig(std::optional(of), type, signal_all, direct) {}
  VerifiedRig(std::optional<NicFamily> of, ibv_qp_type type, bool signal_all, DirectVerbs (*direct)())
      : queue{.memory = of == NicFamily::mlx4 ? HandQueue(NicFamily::mlx4, 16, 512) : HandQueue(NicFamily::mlx5, 16)},
        qp(device.qp(0x4321, type)) {
    begin_counting();
    process.find_direct = direct;
    fake_queues[&qp] = &queue;
    device.context.ops.post_send = &write_send;
    attach_context(device.context, {.family = of});
    attach_qp(qp, nullptr, {}, signal_all, 1024);
  }
  ~VerifiedRig() {
    detach_context(device.context);
    fake_queues.erase(&qp);
    process.find_direct = nullptr;
  }
  VerifiedRig(const VerifiedRig&) = delete;
  VerifiedRig& operator=(const VerifiedRig&) = delete;

  int post(ibv_send_wr& wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(&qp, &wr, &bad);
  }
  CheckSummary found() const { return summarize_process().checks.back(); }

  FakeDevice device;
  FakeQueue queue;
  ibv_qp qp;
};

// The kinds of difference that were found, with their counts.
inline std::map<std::size_t, std::uint64_t> kinds_of(const CheckSummary& found) {
  std::map<std::size_t, std::uint64_t> kinds;
  for (std::size_t kind = 0; kind < kDifferences; ++kind) {
    if (found.differences[kind].count > 0) kinds[kind] = found.differences[kind].count;
  }
  return kinds;
}
inline std::size_t kind_of(Difference difference) {
  return static_cast<std::size_t>(difference);
}
inline std::size_t kind_of(Refusal refusal) {
  return kPlainDifferences + static_cast<std::size_t>(refusal);
}

}  // namespace verbscope::driver
