// Registering memory: sizes, addresses, access, and changes of what was registered. InfiniBand Architecture
// Specification 1.3, volume 1, section 10.6; ibv_reg_mr(3), ibv_rereg_mr(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Registration : public Rig {
 protected:
  static constexpr std::size_t kPlace = 8192;   // of the region in the memory of its side
  static constexpr std::size_t kLength = 8192;  // bytes

  // A WRITE of 8 bytes to `address` by `key`.
  Request write_by(std::uint32_t key, std::uint64_t address) const {
    return {.opcode = IBV_WR_RDMA_WRITE, .sges = {a.sge(0, 8)}, .remote = address, .rkey = key};
  }
  // A WRITE over a pair of its own, and its status.
  ibv_wc_status status_of_write(std::uint32_t key, std::uint64_t address, ibv_pd* pd = nullptr) {
    QpAsk ask;
    ask.pd = pd;
    const Pair pair = connect(IBV_QPT_RC, {}, {}, ask);
    send(pair.a, write_by(key, address));
    const ibv_wc wc = await_one(a.send_cq(), "a WRITE");
    return wc.status;
  }
};

// Section 10.6: a region may have no bytes; nothing can be written there.
TEST_F(Registration, OfNoBytesGrantsNone) {
  if (deviates("no-region-without-bytes")) {
    errno = 0;
    EXPECT_EQ(b.verbs().reg_mr(b.pd(), b.memory(kPlace), 0, kAllAccess), nullptr);
    EXPECT_EQ(errno, EINVAL);
    return;
  }
  const ibv_mr* mr = b.make_mr(kPlace, 0, kAllAccess);
  EXPECT_EQ(mr->length, 0u);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_REM_ACCESS_ERR);
}

// Section 9.7.4.1: a request of no bytes names no region.
TEST_F(Registration, IsNotNeededForNoBytes) {
  const Pair pair = connect(IBV_QPT_RC);
  send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {}, .remote = 0, .rkey = 0});
  await_success(a.send_cq(), "a WRITE of no bytes");
  send(pair.a, {.opcode = IBV_WR_RDMA_READ, .sges = {}, .remote = 0, .rkey = 0});
  await_success(a.send_cq(), "a READ of no bytes");
}

// ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING: devices that do not know it ignore it.
TEST_F(Registration, WithRelaxedOrderGrantsTheSame) {
  const ibv_mr* mr = b.make_mr(kPlace, kLength, kAllAccess | IBV_ACCESS_RELAXED_ORDERING);
  a.word(0) = 77;
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_SUCCESS);
  await_until([this] { return b.word(kPlace) == 77; }, "the WRITE's bytes");
}

TEST_F(Registration, WithUnknownAccessIsRefused) {
  errno = 0;
  ibv_mr* mr = b.verbs().reg_mr(b.pd(), b.memory(kPlace), kLength, IBV_ACCESS_LOCAL_WRITE | 1 << 12);
  EXPECT_EQ(mr, nullptr);
  EXPECT_EQ(errno, EINVAL);
  if (mr != nullptr) b.verbs().dereg_mr(mr);
}

TEST_F(Registration, OverTheEndOfTheAddressesIsRefused) {
  errno = 0;
  ibv_mr* mr = b.verbs().reg_mr(b.pd(), b.memory(kPlace), ~std::size_t{0}, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(mr, nullptr);
  EXPECT_THAT(errno, testing::AnyOf(EINVAL, ENOMEM));
  if (mr != nullptr) b.verbs().dereg_mr(mr);
}

// A region whose requests use other addresses than its memory has (ibv_reg_mr_iova).
class OwnAddress : public Registration {
 protected:
  static constexpr std::uint64_t kIova = 0x7000'0000'0000;

  static ibv_mr* make(Side& side, std::uint64_t iova = kIova) {
    ibv_mr* made = side.verbs().reg_mr_iova(side.pd(), side.memory(kPlace), kLength, iova, kAllAccess);
    return side.keep(made, "region with an address of its own", &Provider::dereg_mr);
  }
  ibv_mr* mr = make(b);
};

TEST_F(OwnAddress, TellsTheMemory) {
  EXPECT_EQ(mr->addr, b.memory(kPlace));
  EXPECT_EQ(mr->length, kLength);
}

TEST_F(OwnAddress, NamesTheFirstByteToAWrite) {
  a.word(0) = 0x1122334455667788;
  EXPECT_EQ(status_of_write(mr->rkey, kIova), IBV_WC_SUCCESS);
  await_until([this] { return b.word(kPlace) == 0x1122334455667788; }, "the WRITE's bytes");
}

TEST_F(OwnAddress, NamesTheLastBytesToALongWrite) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(a.memory(), kLength, 3);
  send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {a.sge(0, kLength)}, .remote = kIova, .rkey = mr->rkey});
  await_success(a.send_cq(), "a WRITE of several packets");
  marker(pair);
  EXPECT_TRUE(has_pattern(b.memory(kPlace), kLength, 3));
  EXPECT_TRUE(is_zero(b.memory(kPlace + kLength), 64));
}

TEST_F(OwnAddress, NamesTheBytesToARead) {
  const Pair pair = connect(IBV_QPT_RC);
  fill(b.memory(kPlace), kLength, 4);
  send(pair.a, {.opcode = IBV_WR_RDMA_READ, .sges = {a.sge(0, 5000)}, .remote = kIova + 100, .rkey = mr->rkey});
  await_success(a.send_cq(), "a READ of several packets");
  EXPECT_TRUE(has_pattern(a.memory(), 5000, 4, 100));
}

TEST_F(OwnAddress, NamesTheWordOfAnAtomic) {
  const Pair pair = connect(IBV_QPT_RC);
  b.word(kPlace + 16) = 40;
  send(pair.a, {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                .sges = {a.sge(0, 8)},
                .remote = kIova + 16,
                .rkey = mr->rkey,
                .compare_add = 2});
  await_success(a.send_cq(), "an atomic");
  EXPECT_EQ(a.word(0), 40u);
  marker(pair);
  EXPECT_EQ(b.word(kPlace + 16), 42u);
}

TEST_F(OwnAddress, NamesTheBuffersOfMessages) {
  const ibv_mr* from = make(a, kIova + 0x10000);
  const Pair pair = connect(IBV_QPT_RC);
  fill(a.memory(kPlace), 3000, 5);
  recv(pair.b, {{kIova + 8, 100, mr->lkey}, {kIova + 4096, 4000, mr->lkey}});
  send(pair.a, {.sges = {{kIova + 0x10000, 3000, from->lkey}}});
  await_success(a.send_cq(), "a SEND from such a region");
  EXPECT_EQ(await_success(b.recv_cq(), "a RECV into such a region").byte_len, 3000u);
  EXPECT_TRUE(has_pattern(b.memory(kPlace + 8), 100, 5));
  EXPECT_TRUE(has_pattern(b.memory(kPlace + 4096), 2900, 5, 100));
}

TEST_F(OwnAddress, NamesTheBuffersOfReads) {
  const ibv_mr* to = make(a, kIova + 0x10000);
  const Pair pair = connect(IBV_QPT_RC);
  fill(b.memory(), 3000, 6);
  send(pair.a, read_of({kIova + 0x10000, 3000, to->lkey}, b, 0));
  await_success(a.send_cq(), "a READ into such a region");
  EXPECT_TRUE(has_pattern(a.memory(kPlace), 3000, 6));
}

TEST_F(OwnAddress, ReplacesThatOfTheMemory) {
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(is_zero(b.memory(kPlace), 8));
}

TEST_F(OwnAddress, EndsWithTheRegion) {
  EXPECT_EQ(status_of_write(mr->rkey, kIova + kLength - 4), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(status_of_write(mr->rkey, kIova - 4), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(OwnAddress, MayBeZero) {
  const ibv_mr* based = make(b, 0);
  a.word(0) = 9;
  EXPECT_EQ(status_of_write(based->rkey, 64), IBV_WC_SUCCESS);
  await_until([this] { return b.word(kPlace + 64) == 9; }, "the WRITE's bytes");
}

// The kernel (ib_uverbs_reg_mr): both addresses are at the same place in their pages.
TEST_F(OwnAddress, AtAnotherPlaceInItsPageIsRefused) {
  errno = 0;
  ibv_mr* made = b.verbs().reg_mr_iova(b.pd(), b.memory(kPlace), kLength, kIova + 64, kAllAccess);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(errno, EINVAL);
  if (made != nullptr) b.verbs().dereg_mr(made);
}

TEST_F(OwnAddress, IsSeenByAThreadThatPollsTheMemory) {
  fabric().watch(b.memory(kPlace), 64);
  a.word(0) = 5;
  const Pair pair = connect(IBV_QPT_RC);
  send(pair.a, write_by(mr->rkey, kIova));
  await_until([this] { return b.word(kPlace) == 5; }, "the WRITE's bytes in polled memory");
}

class Reregistration : public Registration {
 protected:
  ibv_mr* mr = b.make_mr(kPlace, kLength, kAllAccess);

  int change(int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
    errno = 0;
    return b.verbs().rereg_mr(mr, flags, pd, address, length, access);
  }
  // False if the device cannot change regions.
  bool supported() { return change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess) == 0; }
};

TEST_F(Reregistration, MovesAKeyToOtherMemory) {
  VERBSCOPE_NEEDS(supported(), "rereg_mr");
  constexpr std::size_t kOther = 65536;
  const std::uint32_t key = mr->rkey;
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, b.memory(kOther), 4096, 0), 0);
  EXPECT_EQ(mr->addr, b.memory(kOther));
  EXPECT_EQ(mr->length, 4096u);
  EXPECT_EQ(mr->rkey, key);
  a.word(0) = 8;
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kOther)), IBV_WC_SUCCESS);
  await_until([this] { return b.word(kOther) == 8; }, "the WRITE's bytes at the new place");
}

TEST_F(Reregistration, LeavesTheOldMemory) {
  VERBSCOPE_NEEDS(supported(), "rereg_mr");
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, b.memory(65536), 4096, 0), 0);
  a.word(0) = 8;
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(is_zero(b.memory(kPlace), 8));
}

TEST_F(Reregistration, GivesAndTakesAccess) {
  VERBSCOPE_NEEDS(supported(), "rereg_mr");
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE), 0);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_REM_ACCESS_ERR);
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess), 0);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_SUCCESS);
}

TEST_F(Reregistration, MovesARegionToAnotherPd) {
  VERBSCOPE_NEEDS(supported(), "rereg_mr");
  ibv_pd* other = b.make_pd();
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), 0);
  EXPECT_EQ(mr->pd, other);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace), other), IBV_WC_SUCCESS);
  EXPECT_EQ(b.destroy(other), EBUSY);
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, b.pd(), nullptr, 0, 0), 0);
}

TEST_F(Reregistration, ChangesEverythingAtOnce) {
  VERBSCOPE_NEEDS(supported(), "rereg_mr");
  ibv_pd* other = b.make_pd();
  constexpr int kAll = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  ASSERT_EQ(change(kAll, other, b.memory(65536), 4096, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(65536), other), IBV_WC_REM_ACCESS_ERR);
  QpAsk ask;
  ask.pd = other;
  const Pair pair = connect(IBV_QPT_RC, {}, {}, ask);
  fill(b.memory(65536), 64, 7);
  send(pair.a, {.opcode = IBV_WR_RDMA_READ, .sges = {a.sge(0, 64)}, .remote = b.address(65536), .rkey = mr->rkey});
  await_success(a.send_cq(), "a READ of the region's new place");
  EXPECT_TRUE(has_pattern(a.memory(), 64, 7));
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, b.pd(), nullptr, 0, 0), 0);
}

TEST_F(Reregistration, RefusesInputAndKeepsTheRegion) {
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 4096, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, b.memory(), 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_PD, b.pd(), nullptr, 0, kAllAccess), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(change(1 << 6, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_SUCCESS);
}

// A region of a parent domain belongs to the PD behind it.
TEST_F(Registration, InAParentDomainServesTheQpsOfItsPd) {
  ibv_td_init_attr td_attr{};
  ibv_td* td = ibv_alloc_td(b.context(), &td_attr);
  VERBSCOPE_NEEDS(td != nullptr, "thread domains");
  b.keep(td, "thread domain", [td] { return ibv_dealloc_td(td); });
  ibv_parent_domain_init_attr attr{};
  attr.pd = b.pd();
  attr.td = td;
  ibv_pd* domain = b.keep(ibv_alloc_parent_domain(b.context(), &attr), "parent domain", &Provider::dealloc_pd);
  const ibv_mr* mr = b.make_mr(kPlace, kLength, kAllAccess, domain);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace)), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of_write(mr->rkey, b.address(kPlace), domain), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace verbscope::conformance
