// Processes that fork while they use a device. ibv_fork_init(3), ibv_is_fork_initialized(3). The child has copies of
// the registered pages, and the device must go on with those of the parent. tests/conformance/main.cpp calls
// ibv_fork_init.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <utility>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

// A child that shares the pages of its parent until it ends.
class Child {
 public:
  // `body` runs in the child. What it returns is what end() tells.
  explicit Child(const std::function<bool()>& body) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    id_ = fork();
    EXPECT_GE(id_, 0);
    if (id_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool good = body();
    char byte = 0;
    _exit(read(ends_[0], &byte, 1) == 1 && good ? 0 : 1);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  bool end() {
    if (id_ <= 0) return false;
    EXPECT_EQ(write(ends_[1], "", 1), 1);
    int status = 0;
    const bool ended = waitpid(std::exchange(id_, -1), &status, 0) > 0;
    for (const int fd : ends_) close(fd);
    return ended && status == 0;
  }

 private:
  std::array<int, 2> ends_{};
  pid_t id_ = -1;
};

class Fork : public Rig {
 protected:
  static constexpr std::size_t kPlace = 65536;
  static constexpr std::uint32_t kLength = 20'000;  // several pages

  Pair pair = connect(IBV_QPT_RC);

  static bool does_nothing() { return true; }

  static bool is_mapped(const void* place) {
    const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(place) / page_bytes * page_bytes), 1,
                   &resident) == 0;
  }

  // The parent's memory at `offset` of a side gets new pages, because the child has the old ones.
  static void copy_pages(const Side& side, std::size_t offset, std::size_t bytes) {
    std::memset(side.memory(offset), 0xee, bytes);
  }
};

TEST_F(Fork, IsPreparedOrNeedsNoPreparation) {
  EXPECT_NE(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
  EXPECT_EQ(ibv_fork_init(), 0) << "a second call";
}

TEST_F(Fork, DeviceServesTheParentOnceAChildHasEnded) {
  EXPECT_TRUE(Child(&does_nothing).end());
  marker(pair);
  marker(connect(IBV_QPT_RC));
}

TEST_F(Fork, DeviceReadsWhatTheParentHasWrittenSince) {
  Child child(&does_nothing);
  copy_pages(a, kPlace, kLength);
  fill(a.memory(kPlace), kLength, 3);
  recv(pair.b, {b.sge(0, kLength)});
  send(pair.a, {.sges = {a.sge(kPlace, kLength)}});
  await_success(b.recv_cq(), "a message of pages that were copied");
  EXPECT_TRUE(has_pattern(b.memory(), kLength, 3));
  EXPECT_TRUE(child.end());
}

TEST_F(Fork, DeviceWritesWhereTheParentReads) {
  Child child(&does_nothing);
  copy_pages(b, kPlace, kLength);
  fill(a.memory(), kLength, 4);
  send(pair.a, write_to(a.sge(0, kLength), b, kPlace));
  await_success(a.send_cq(), "a WRITE to pages that were copied");
  await_until([this] { return has_pattern(b.memory(kPlace), kLength, 4); }, "the WRITE's bytes");
  EXPECT_TRUE(child.end());
}

TEST_F(Fork, DeviceWritesAReadsResultWhereTheParentReads) {
  fill(b.memory(kPlace), kLength, 5);
  Child child(&does_nothing);
  copy_pages(a, 0, kLength);
  send(pair.a, read_of(a.sge(0, kLength), b, kPlace));
  await_success(a.send_cq(), "a READ to pages that were copied");
  EXPECT_TRUE(has_pattern(a.memory(), kLength, 5));
  EXPECT_TRUE(child.end());
}

TEST_F(Fork, ReceivesThatWerePostedBeforeGetTheirMessages) {
  recv(pair.b, {b.sge(kPlace, kLength)}, 6);
  Child child(&does_nothing);
  copy_pages(b, kPlace, kLength);
  fill(a.memory(), kLength, 6);
  send(pair.a, {.sges = {a.sge(0, kLength)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a message to pages that were copied").wr_id, 6u);
  EXPECT_TRUE(has_pattern(b.memory(kPlace), kLength, 6));
  EXPECT_TRUE(child.end());
}

// libibverbs 44 marks registered pages MADV_DONTFORK even where the kernel copies them (IBV_FORK_UNNEEDED). Then the
// child has none to change.
TEST_F(Fork, ChildChangesItsOwnCopyOnly) {
  fill(b.memory(kPlace), kLength, 7);
  Child child([this] {
    if (!is_mapped(b.memory(kPlace))) return true;
    const bool copied = static_cast<bool>(has_pattern(b.memory(kPlace), kLength, 7));
    copy_pages(b, kPlace, kLength);
    return copied;
  });
  EXPECT_TRUE(child.end());
  send(pair.a, read_of(a.sge(0, kLength), b, kPlace));
  await_success(a.send_cq(), "a READ");
  EXPECT_TRUE(has_pattern(a.memory(), kLength, 7));
  EXPECT_TRUE(has_pattern(b.memory(kPlace), kLength, 7));
}

TEST_F(Fork, RegionsOfAParentWithAChildAreRegisteredAndDeregistered) {
  Child child(&does_nothing);
  ibv_mr* mr = b.make_mr(kPlace, 4096, kAllAccess);
  send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {a.sge(0, 8)}, .remote = b.address(kPlace), .rkey = mr->rkey});
  await_success(a.send_cq(), "a WRITE to a region that was registered since");
  EXPECT_EQ(b.destroy(mr), 0);
  EXPECT_TRUE(child.end());
}

TEST_F(Fork, SeveralChildrenLeaveTheDeviceToTheirParent) {
  for (unsigned round = 0; round < 4; ++round) {
    Child first(&does_nothing);
    Child second(&does_nothing);
    copy_pages(b, kPlace, kLength);
    fill(a.memory(), kLength, round);
    send(pair.a, write_to(a.sge(0, kLength), b, kPlace));
    await_success(a.send_cq(), "a WRITE");
    EXPECT_TRUE(first.end());
    await_until([this, round] { return has_pattern(b.memory(kPlace), kLength, round); }, "the WRITE's bytes");
  }
}

}  // namespace
}  // namespace verbscope::conformance
