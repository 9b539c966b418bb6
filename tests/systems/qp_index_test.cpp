// Who sent a datagram: by QP number and LID, and by QP number alone where there are no LIDs.
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "systems/requests/peers.hpp"

namespace verbscope {
namespace {

TEST(QpIndex, FindsPeersByQpNumberAndLid) {
  const QpIndex qps({{.qpn = 0x100, .lid = 1}, {.qpn = 0x100, .lid = 2}, {.qpn = 0x101, .lid = 1}});
  const auto find = [&](std::uint32_t qpn, std::uint16_t lid) {
    ibv_wc wc{};
    wc.src_qp = qpn;
    wc.slid = lid;
    return qps.find(wc);
  };
  EXPECT_EQ(find(0x100, 1), 0u);
  EXPECT_EQ(find(0x100, 2), 1u);
  EXPECT_EQ(find(0x101, 1), 2u);
  EXPECT_EQ(find(0x101, 2), QpIndex::kNotFound);
}

TEST(QpIndex, OnEthernetNumbersMustDiffer) {
  const QpIndex qps({{.qpn = 5}, {.qpn = 6}});
  ibv_wc wc{};
  wc.src_qp = 6;
  wc.slid = 77;  // means nothing
  EXPECT_EQ(qps.find(wc), 1u);
  EXPECT_THROW(QpIndex({{.qpn = 5}, {.qpn = 5}}), Error);
}

}  // namespace
}  // namespace verbscope
