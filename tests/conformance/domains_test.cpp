// Thread domains and parent domains: ibv_alloc_td(3), ibv_alloc_parent_domain(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Domains : public Rig {
 protected:
  ibv_td* td = nullptr;

  void SetUp() override {
    ibv_td_init_attr attr{};
    td = ibv_alloc_td(b.context(), &attr);
    VERBSCOPE_NEEDS(td != nullptr, "thread domains");
    b.keep(td, "thread domain", [this] { return ibv_dealloc_td(td); });
  }
  ibv_pd* make(ibv_td* of) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = b.pd();
    attr.td = of;
    return b.keep(ibv_alloc_parent_domain(b.context(), &attr), "parent domain", &Provider::dealloc_pd);
  }
};

TEST_F(Domains, OfAThreadServeQps) {
  QpAsk ask;
  ask.pd = make(td);
  const Pair pair = connect(IBV_QPT_RC, {}, {}, ask);
  marker(pair);
  recv(pair.a, {a.sge(0, 64)});
  send(pair.b, {.sges = {b.sge(0, 8)}});
  await_success(b.send_cq(), "a SEND of a QP in a parent domain");
}

TEST_F(Domains, WithoutAThreadServeQps) {
  QpAsk ask;
  ask.pd = make(nullptr);
  marker(connect(IBV_QPT_RC, {}, {}, ask));
}

TEST_F(Domains, ServeSeveralQpsEach) {
  QpAsk ask;
  ask.pd = make(td);
  for (int i = 0; i < 3; ++i) marker(connect(IBV_QPT_RC, {}, {}, ask));
}

TEST_F(Domains, KeepTheirPdBusy) {
  ibv_pd* pd = b.make_pd();
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.td = td;
  ibv_pd* domain = ibv_alloc_parent_domain(b.context(), &attr);
  ASSERT_NE(domain, nullptr);
  EXPECT_EQ(b.destroy(pd), EBUSY);
  EXPECT_EQ(b.verbs().dealloc_pd(domain), 0);
  EXPECT_EQ(b.destroy(pd), 0);
}

TEST_F(Domains, KeepTheirThreadDomainBusy) {
  ibv_pd* domain = make(td);
  EXPECT_EQ(b.destroy(td), EBUSY);
  EXPECT_EQ(b.destroy(domain), 0);
  EXPECT_EQ(b.destroy(td), 0);
}

TEST_F(Domains, AreBusyWhileAQpUsesThem) {
  ibv_pd* domain = make(td);
  QpAsk ask;
  ask.pd = domain;
  ibv_qp* qp = b.make_qp(IBV_QPT_RC, ask);
  EXPECT_EQ(b.destroy(domain), EBUSY);
  EXPECT_EQ(b.destroy(qp), 0);
  EXPECT_EQ(b.destroy(domain), 0);
}

TEST_F(Domains, WithoutAPdAreRefused) {
  ibv_parent_domain_init_attr attr{};
  attr.td = td;
  errno = 0;
  EXPECT_EQ(ibv_alloc_parent_domain(b.context(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Domains, OfAThreadWithUnknownAttributesAreRefused) {
  ibv_td_init_attr attr{};
  attr.comp_mask = 1;
  EXPECT_EQ(ibv_alloc_td(b.context(), &attr), nullptr);
}

}  // namespace
}  // namespace verbscope::conformance
