// --verify of the ibv_wr_* interface.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <vector>

#include "tests/drivers_patch/fake_direct_verbs.hpp"

namespace verbscope::driver {
namespace {

// The builder of a QP of the fake provider: the call that sets the data of a request writes its WQE, and the adapter
// is notified at the end.
struct FakeBuilder : ibv_qp_ex {
  FakeBuilder(FakeDevice& device, FakeQueue& of) : ibv_qp_ex{}, queue(of) {
    qp_base = device.qp(0x77);
    wr_start = [](ibv_qp_ex* qp) { at(qp).first = at(qp).queue.memory.position(); };
    wr_complete = [](ibv_qp_ex* qp) {
      FakeBuilder& builder = at(qp);
      if (builder.result == 0) {
        builder.queue.memory.ring();
      } else {
        builder.queue.memory.go_back(builder.first);
      }
      return builder.result;
    };
    wr_abort = [](ibv_qp_ex* qp) { at(qp).queue.memory.go_back(at(qp).first); };
    wr_send = [](ibv_qp_ex* qp) { at(qp).begin({.opcode = kSend}); };
    wr_send_imm = [](ibv_qp_ex* qp, __be32) { at(qp).begin({.opcode = kSendImm}); };
    wr_rdma_write = [](ibv_qp_ex* qp, std::uint32_t, std::uint64_t) {
      at(qp).begin({.opcode = kWrite, .one_sided = true});
    };
    wr_rdma_read = [](ibv_qp_ex* qp, std::uint32_t, std::uint64_t) {
      at(qp).begin({.opcode = kRead, .one_sided = true});
    };
    wr_atomic_fetch_add = [](ibv_qp_ex* qp, std::uint32_t, std::uint64_t, std::uint64_t) {
      at(qp).begin({.opcode = kFetchAdd, .one_sided = true, .atomic = true});
    };
    wr_set_sge = [](ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
      at(qp).lay({{.addr = address, .length = length, .lkey = lkey}});
    };
    wr_set_sge_list = [](ibv_qp_ex* qp, std::size_t elements, const ibv_sge* list) {
      at(qp).lay({list, list + elements});
    };
    wr_set_inline_data = [](ibv_qp_ex* qp, void*, std::size_t length) { at(qp).lay_inline(length); };
    wr_set_inline_data_list = [](ibv_qp_ex* qp, std::size_t buffers, const ibv_data_buf* list) {
      std::size_t length = 0;
      for (std::size_t i = 0; i < buffers; ++i) length += list[i].length;
      at(qp).lay_inline(length);
    };
  }

  static FakeBuilder& at(ibv_qp_ex* qp) { return *static_cast<FakeBuilder*>(qp); }
  void begin(HandWqe begun) {
    wqe = std::move(begun);
    wqe.signaled = (wr_flags & IBV_SEND_SIGNALED) != 0;
    wqe.fence = (wr_flags & IBV_SEND_FENCE) != 0;
  }
  void lay(std::vector<ibv_sge> elements) {
    wqe.elements = std::move(elements);
    queue.change(wqe);
    queue.write(queue.memory, wqe);
  }
  void lay_inline(std::size_t length) {
    wqe.inline_data = some_bytes(length);
    lay({});
  }

  FakeQueue& queue;
  HandWqe wqe;
  std::uint32_t first = 0;
  int result = 0;
};

struct BuiltRig {
  BuiltRig() {
    begin_counting();
    process.find_direct = &fake_direct_verbs;
    fake_queues[&builder.qp_base] = &queue;
    attach_context(device.context, {.family = NicFamily::mlx5});
    attach_qp(builder.qp_base, &builder, {}, false, 1024);
  }
  ~BuiltRig() {
    detach_context(device.context);
    fake_queues.erase(&builder.qp_base);
    process.find_direct = nullptr;
  }
  BuiltRig(const BuiltRig&) = delete;
  BuiltRig& operator=(const BuiltRig&) = delete;

  void build_write(std::uint32_t length) {
    ibv_wr_rdma_write(&builder, 1, 2);
    ibv_wr_set_sge(&builder, 3, 4, length);
  }
  CheckSummary found() const { return summarize_process().checks.back(); }

  FakeDevice device;
  FakeQueue queue{.memory = HandQueue(NicFamily::mlx5, 128)};
  FakeBuilder builder{device, queue};
};

// A batch of six requests of all kinds.
int build_six(BuiltRig& rig) {
  std::array<ibv_sge, 3> three{{{1, 2, 3}, {4, 0, 6}, {7, 8, 9}}};  // one is empty
  std::array<ibv_data_buf, 2> buffers{{{nullptr, 20}, {nullptr, 30}}};
  ibv_wr_start(&rig.builder);
  rig.builder.wr_flags = 0;
  rig.build_write(100);
  ibv_wr_send_imm(&rig.builder, 1);
  ibv_wr_set_inline_data(&rig.builder, nullptr, 45);
  rig.builder.wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  ibv_wr_rdma_read(&rig.builder, 1, 2);
  ibv_wr_set_sge_list(&rig.builder, three.size(), three.data());
  rig.builder.wr_flags = 0;
  ibv_wr_send(&rig.builder);
  ibv_wr_set_inline_data_list(&rig.builder, buffers.size(), buffers.data());
  ibv_wr_atomic_fetch_add(&rig.builder, 1, 2, 3);
  ibv_wr_set_sge(&rig.builder, 3, 4, 8);
  rig.build_write(1);
  return ibv_wr_complete(&rig.builder);
}

TEST(VerifyBuilder, AcceptsExpectedBatches) {
  BuiltRig rig;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(build_six(rig), 0);
  EXPECT_TRUE(kinds_of(rig.found()).empty());
  EXPECT_EQ(rig.found().wqes, 300u);
  EXPECT_EQ(rig.found().left_out, 0u);
  EXPECT_EQ(summarize_process().qps.back().sums.requests(), 300u);  // counted as without
}

TEST(VerifyBuilder, ReportsAPlantedDifferenceWithAnExample) {
  BuiltRig rig;
  rig.queue.change = [](HandWqe& wqe) {
    if (wqe.opcode == kRead) wqe.elements.pop_back();
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(build_six(rig), 0);
  const CheckSummary found = rig.found();
  EXPECT_EQ(kinds_of(found), (std::map<std::size_t, std::uint64_t>{{kind_of(Difference::size), 2}}));
  const DifferenceExample& example = found.differences[kind_of(Difference::size)].example;
  EXPECT_EQ(example.opcode, std::uint64_t{IBV_WR_RDMA_READ});
  EXPECT_EQ(example.position, 3u);  // after a WRITE of one block and a SEND of 65 bytes
  EXPECT_EQ(example.elements, 3u);
  EXPECT_EQ(example.expected, 64u);
  EXPECT_EQ(example.found, 48u);
}

TEST(VerifyBuilder, SkipsAbortedAndRefusedBatches) {
  BuiltRig rig;
  ibv_wr_start(&rig.builder);
  rig.build_write(1);
  ibv_wr_abort(&rig.builder);
  rig.builder.result = ENOMEM;
  rig.queue.change = [](HandWqe& wqe) { wqe.fence = true; };  // and what is in the queue then does not count
  EXPECT_EQ(build_six(rig), ENOMEM);
  EXPECT_EQ(rig.found().wqes, 0u);
  EXPECT_TRUE(kinds_of(rig.found()).empty());
  rig.builder.result = 0;
  rig.queue.change = [](HandWqe&) {};
  EXPECT_EQ(build_six(rig), 0);
  EXPECT_EQ(rig.found().wqes, 6u);
  EXPECT_TRUE(kinds_of(rig.found()).empty());
}

TEST(VerifyBuilder, ComparesTheFirst64RequestsOfALongBatch) {
  BuiltRig rig;
  for (int batch = 0; batch < 3; ++batch) {
    ibv_wr_start(&rig.builder);
    for (int i = 0; i < 70; ++i) rig.build_write(1);
    EXPECT_EQ(ibv_wr_complete(&rig.builder), 0);
  }
  EXPECT_EQ(rig.found().wqes, 192u);
  EXPECT_EQ(rig.found().left_out, 18u);
  EXPECT_TRUE(kinds_of(rig.found()).empty());
}

}  // namespace
}  // namespace verbscope::driver
