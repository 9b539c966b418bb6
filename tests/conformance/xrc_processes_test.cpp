// XRC domains and targets that several processes share: ibv_open_xrcd(3), ibv_open_qp(3).
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "tests/conformance/xrc.hpp"

namespace verbscope::conformance {
namespace {

// A second context of the same device, as another process has it.
class XrcProcesses : public Xrc {
 protected:
  void SetUp() override {
    Xrc::SetUp();
    if (IsSkipped()) return;
    file = ::open("/tmp", O_TMPFILE | O_RDWR, S_IRUSR | S_IWUSR);
    ASSERT_GE(file, 0);
    other = std::make_unique<Side>(1);
  }
  ~XrcProcesses() override {
    if (file >= 0) close(file);
  }

  int file = -1;
  std::unique_ptr<Side> other;
};

TEST_F(XrcProcesses, ShareADomainByAFile) {
  ibv_xrcd* ours = open(b, file, O_CREAT);
  ibv_xrcd* theirs = open(*other, file, O_CREAT);
  ibv_srq* srq = make_queue(*other, theirs);
  const Pair pair = link_to(make_target(b, ours));
  srq_recv(srq, {other->sge(0, 64)}, 5);
  a.word(0) = 99;
  send(pair.a, to(srq, a.sge(0, 8)));
  EXPECT_EQ(await_success(other->recv_cq(), "a SEND to the other process").wr_id, 5u);
  EXPECT_EQ(other->word(0), 99u);
}

TEST_F(XrcProcesses, FindNoDomainOrTooMany) {
  EXPECT_EQ(try_to_open(b, file, 0), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ibv_xrcd* made = open(b, file, O_CREAT | O_EXCL);
  EXPECT_EQ(try_to_open(*other, file, O_CREAT | O_EXCL), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_xrcd* again = open(*other, file, 0);
  EXPECT_EQ(b.destroy(made), 0);
  EXPECT_EQ(other->destroy(again), 0);
  EXPECT_EQ(try_to_open(b, file, 0), nullptr) << "the last handle was closed";
}

TEST_F(XrcProcesses, NeedAnOpenFile) {
  EXPECT_EQ(try_to_open(b, 100'000, O_CREAT), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(XrcProcesses, OpenTheSameTarget) {
  ibv_xrcd* ours = open(b, file, O_CREAT);
  ibv_xrcd* theirs = open(*other, file, O_CREAT);
  ibv_qp* target = make_target(b, ours);
  ibv_qp* handle = other->keep(try_to_open_target(*other, theirs, target->qp_num), "handle", &Provider::destroy_qp);
  EXPECT_EQ(handle->qp_num, target->qp_num);
  EXPECT_EQ(other->destroy(theirs), EBUSY);
  const Pair pair{a.make_qp(IBV_QPT_XRC_SEND), handle};
  ASSERT_EQ(bring_up(a, pair.a, b, target->qp_num), 0);
  ASSERT_EQ(bring_up(*other, handle, a, pair.a->qp_num), 0);
  EXPECT_EQ(state_of(b, target), IBV_QPS_RTS);
  EXPECT_EQ(state_of(*other, handle), IBV_QPS_RTS);
  EXPECT_EQ(b.destroy(target), 0);  // the QP lives on
  ibv_srq* srq = make_queue(b, ours);
  srq_recv(srq, {b.sge(0, 64)}, 9);
  send(pair.a, to(srq, a.sge(0, 8)));
  EXPECT_EQ(await_success(b.recv_cq(), "a SEND to a QP that another process keeps").wr_id, 9u);
  EXPECT_EQ(other->destroy(handle), 0);
  send(pair.a, to(srq, a.sge(0, 8)));
  await_success(a.send_cq(), "the first SEND");
  EXPECT_EQ(try_to_open_target(*other, theirs, pair.b->qp_num), nullptr) << "the last handle was closed";
}

TEST_F(XrcProcesses, OpenOnlyTargetsOfTheirDomain) {
  ibv_xrcd* theirs = open(*other, file, O_CREAT);
  const std::uint32_t number = make_target(b, domain)->qp_num;
  EXPECT_EQ(try_to_open_target(*other, theirs, number), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(try_to_open_target(*other, theirs, number + 0x1000), nullptr);
  EXPECT_EQ(try_to_open_target(*other, theirs, b.make_qp(IBV_QPT_RC)->qp_num), nullptr);
}

}  // namespace
}  // namespace verbscope::conformance
