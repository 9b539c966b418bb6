// --verify on queues that are laid out by hand: correct ones, and ones with planted differences.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>

#include "tests/drivers_patch/fake_direct_verbs.hpp"

namespace verbscope::driver {
namespace {

using Kinds = std::map<std::size_t, std::uint64_t>;

constexpr ibv_wr_opcode kOfRc[] = {
    IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,      IBV_WR_RDMA_WRITE,          IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
constexpr ibv_wr_opcode kOfUc[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
constexpr ibv_wr_opcode kOfUd[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};

std::span<const ibv_wr_opcode> opcodes_of(ibv_qp_type type) {
  if (type == IBV_QPT_RC) return kOfRc;
  return type == IBV_QPT_UC ? std::span<const ibv_wr_opcode>(kOfUc) : kOfUd;
}

// Posts requests of an opcode with different flags, sizes and elements. Returns their number.
std::uint64_t post_all(VerifiedRig& rig, ibv_wr_opcode opcode) {
  const bool sends = opcode < IBV_WR_RDMA_READ;  // all that may be inline
  std::uint64_t posted = 0;
  for (const unsigned flags : {0u, unsigned{IBV_SEND_SIGNALED}, unsigned{IBV_SEND_FENCE | IBV_SEND_SOLICITED}}) {
    for (const std::uint32_t length : {1u, 8u, 28u, 29u, 60u, 61u, 200u}) {
      Send gathered(opcode, length, flags);
      EXPECT_EQ(rig.post(gathered.wr), 0);
      std::array<ibv_sge, 3> three{{{.addr = 4, .length = length, .lkey = 1},
                                    {.addr = 9, .length = 3, .lkey = 2},
                                    {.addr = 1, .length = 1, .lkey = 3}}};
      gathered.wr.sg_list = three.data();
      gathered.wr.num_sge = 3;
      EXPECT_EQ(rig.post(gathered.wr), 0);
      three[1].length = 0;
      EXPECT_EQ(rig.post(gathered.wr), 0);
      gathered.wr.num_sge = 0;
      EXPECT_EQ(rig.post(gathered.wr), 0);
      posted += 4;
      if (!sends) continue;
      gathered.wr.send_flags |= IBV_SEND_INLINE;
      for (const int elements : {1, 3}) {
        gathered.wr.num_sge = elements;
        EXPECT_EQ(rig.post(gathered.wr), 0);
        ++posted;
      }
    }
  }
  return posted;
}

TEST(Verify, AcceptsExpectedWqes) {
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
      VerifiedRig rig(family, type);
      std::uint64_t posted = 0;
      for (const ibv_wr_opcode opcode : opcodes_of(type)) posted += post_all(rig, opcode);
      const CheckSummary found = rig.found();
      EXPECT_EQ(kinds_of(found), Kinds{}) << to_string(family) << " " << type;
      EXPECT_EQ(found.wqes, posted);
      EXPECT_EQ(found.left_out, 0u);
      EXPECT_EQ(rig.queue.asked, 1);
    }
  }
}

TEST(Verify, ChecksTheAcceptedPartOfLists) {
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    VerifiedRig rig(family);
    std::array<Send, 5> list;
    for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].wr.next = &list[i + 1].wr;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.post(list[0].wr), 0);
    rig.queue.refuses_after = 2;
    EXPECT_EQ(rig.post(list[0].wr), ENOMEM);
    rig.queue.refuses_after = 0;
    EXPECT_EQ(rig.post(list[0].wr), ENOMEM);
    EXPECT_EQ(kinds_of(rig.found()), Kinds{});
    EXPECT_EQ(rig.found().wqes, 102u);
  }
}

TEST(Verify, ExpectsSignaledWqesOnAQpThatSignalsAll) {
  VerifiedRig rig(NicFamily::mlx5, IBV_QPT_RC, true);
  Send send;
  EXPECT_EQ(rig.post(send.wr), 0);
  EXPECT_EQ(kinds_of(rig.found()), (Kinds{{kind_of(Difference::signaled), 1}}));
  rig.queue.change = [](HandWqe& wqe) { wqe.signaled = true; };
  EXPECT_EQ(rig.post(send.wr), 0);
  EXPECT_EQ(kinds_of(rig.found()), (Kinds{{kind_of(Difference::signaled), 1}}));
}

struct PlantedDifference {
  std::size_t kind;
  std::function<void(HandWqe&)> change;
  std::uint64_t expected;  // by hand, of a signaled WRITE of 64 bytes in one element
  std::uint64_t found;
};

TEST(Verify, ReportsEachPlantedDifferenceOnceWithAnExample) {
  const ibv_sge more{.addr = 1, .length = 2, .lkey = 3};
  const PlantedDifference all[] = {
      {kind_of(Difference::opcode), [](HandWqe& wqe) { wqe.opcode = kWriteImm; }, IBV_WR_RDMA_WRITE,
       IBV_WR_RDMA_WRITE_WITH_IMM},
      {kind_of(Difference::size), [more](HandWqe& wqe) { wqe.elements.push_back(more); }, 48, 64},
      {kind_of(Difference::signaled), [](HandWqe& wqe) { wqe.signaled = false; }, 1, 0},
      {kind_of(Difference::fence), [](HandWqe& wqe) { wqe.fence = true; }, 0, 1},
      {kind_of(Difference::solicited), [](HandWqe& wqe) { wqe.solicited = true; }, 0, 1},
      // 12 bytes inline take as much as an element.
      {kind_of(Difference::inline_bytes), [](HandWqe& wqe) { wqe.inline_data = some_bytes(12); }, 0, 12},
      {kind_of(Refusal::unknown_opcode), [](HandWqe& wqe) { wqe.opcode = 0x1f; }, 0, 0}};
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    for (const PlantedDifference& planted : all) {
      SCOPED_TRACE(std::string(to_string(family)) + ", kind " + std::to_string(planted.kind));
      VerifiedRig rig(family);
      Send write(IBV_WR_RDMA_WRITE, 64, IBV_SEND_SIGNALED);
      EXPECT_EQ(rig.post(write.wr), 0);
      rig.queue.change = planted.change;
      const std::uint32_t first = rig.queue.memory.position();
      for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.post(write.wr), 0);
      const CheckSummary found = rig.found();
      EXPECT_EQ(kinds_of(found), (Kinds{{planted.kind, 3}}));
      EXPECT_EQ(found.wqes, 4u);
      ASSERT_TRUE(found.differences[planted.kind].filled);
      const DifferenceExample& example = found.differences[planted.kind].example;
      EXPECT_EQ(example.qp_num, 0x4321u);
      EXPECT_EQ(example.position, first);
      EXPECT_EQ(example.opcode, std::uint64_t{IBV_WR_RDMA_WRITE});
      EXPECT_EQ(example.elements, 1u);
      EXPECT_EQ(example.length, 64u);
      EXPECT_EQ(example.expected, planted.expected);
      EXPECT_EQ(example.found, planted.found);
    }
  }
}

TEST(Verify, ReportsMoreWqesThanRequests) {
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    VerifiedRig rig(family);
    rig.queue.write = [](HandQueue& to, const HandWqe& wqe) {
      to.lay(wqe);
      to.lay(wqe);
    };
    Send send;
    EXPECT_EQ(rig.post(send.wr), 0);
    const CheckSummary found = rig.found();
    EXPECT_EQ(kinds_of(found), (Kinds{{kind_of(Difference::position), 1}}));
    EXPECT_EQ(found.differences[kind_of(Difference::position)].example.expected, 1u);
    EXPECT_EQ(found.differences[kind_of(Difference::position)].example.found, 2u);
  }
}

TEST(Verify, ReportsAQueueThatWasNotWritten) {
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    VerifiedRig rig(family);
    rig.queue.write = [](HandQueue&, const HandWqe&) {};
    Send send;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.post(send.wr), 0);
    EXPECT_EQ(kinds_of(rig.found()), (Kinds{{kind_of(Refusal::not_written), 2}}));
  }
}

TEST(Verify, ReportsAMissingDoorbellRecord) {
  VerifiedRig rig(NicFamily::mlx5);
  rig.queue.rings = false;
  Send send;
  EXPECT_EQ(rig.post(send.wr), 0);
  EXPECT_EQ(kinds_of(rig.found()), (Kinds{{kind_of(Difference::position), 1}}));
}

TEST(Verify, AcceptsAResetQueue) {
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    VerifiedRig rig(family);
    Send send;
    for (int i = 0; i < 21; ++i) EXPECT_EQ(rig.post(send.wr), 0);
    rig.queue.memory.reset();
    for (int i = 0; i < 21; ++i) EXPECT_EQ(rig.post(send.wr), 0);
    EXPECT_EQ(kinds_of(rig.found()), Kinds{});
    EXPECT_EQ(rig.found().wqes, 42u);
  }
}

TEST(Verify, SkipsUnknownTransports) {
  VerifiedRig of_xrc(NicFamily::mlx5, IBV_QPT_XRC_SEND);
  Send send;
  EXPECT_EQ(of_xrc.post(send.wr), 0);
  EXPECT_EQ(of_xrc.found().left_out, 1u);
  EXPECT_EQ(of_xrc.found().wqes, 0u);
  EXPECT_EQ(kinds_of(of_xrc.found()), Kinds{});
}

TEST(Verify, PostsContinueWithoutQueueMemory) {
  VerifiedRig refused;
  refused.queue.error = EOPNOTSUPP;
  Send send;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refused.post(send.wr), 0);
  EXPECT_EQ(refused.found().without_memory, 1u);
  EXPECT_EQ(refused.found().first_error, std::uint64_t{EOPNOTSUPP});
  EXPECT_EQ(refused.found().wqes, 0u);
  EXPECT_EQ(refused.queue.asked, 1);
  EXPECT_EQ(refused.queue.memory.position(), 3u);

  VerifiedRig absent(
      NicFamily::mlx5, IBV_QPT_RC, false, +[] { return DirectVerbs{}; });
  EXPECT_EQ(absent.post(send.wr), 0);
  EXPECT_EQ(absent.found().memory, QueueMemory::no_direct_verbs);

  VerifiedRig other(std::nullopt, IBV_QPT_RC, false, &fake_direct_verbs);
  EXPECT_EQ(other.post(send.wr), 0);
  EXPECT_EQ(other.found().memory, QueueMemory::other_adapter);
  EXPECT_EQ(other.queue.asked, 0);
}

TEST(Verify, CallsTheProviderDirectlyWithoutVerify) {
  FakeDevice device;
  counted_context(device.context);
  ibv_qp qp = device.qp(3);
  const auto provider = find_context(&device.context)->ops.post_send;
  EXPECT_EQ(find_context(&device.context)->post_send, provider);
  EXPECT_EQ(qp_counts(&qp).post_send, provider);
  const std::uint32_t context = find_context(&device.context)->record->number;
  for (const CheckSummary& each : summarize_process().checks) EXPECT_NE(each.context, context);
  detach_context(device.context);
  EXPECT_EQ(device.context.ops.post_send, provider);
}

// The installed providers, opened with local symbols as libibverbs does.
TEST(Verify, FindsTheFunctionsOfInstalledProviders) {
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    const std::string library = "lib" + std::string(to_string(family)) + ".so.1";
    EXPECT_FALSE(find_direct_verbs().has(family));
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) GTEST_SKIP() << library << " is not installed";
    EXPECT_TRUE(find_direct_verbs().has(family));
  }
}

TEST(Verify, KeepsErrno) {
  VerifiedRig rig;
  Send send;
  errno = EXDEV;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.post(send.wr), 0);
  EXPECT_EQ(errno, EXDEV);
}

}  // namespace
}  // namespace verbscope::driver
