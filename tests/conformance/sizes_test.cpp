// Messages of every interesting length arrive whole and nowhere else. InfiniBand Architecture Specification 1.3, volume
// 1, section 9.7.2 (segmentation into packets of the path MTU).
#include <tuple>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

constexpr std::uint32_t kGuard = 64;  // bytes behind the message that must stay as they are

struct Length {
  const char* name;
  std::uint32_t mtus;
  std::uint32_t bytes;  // added to so many MTUs

  friend std::ostream& operator<<(std::ostream& out, const Length& length) { return out << length.name; }
};
constexpr std::uint32_t kMegabyte = 1 << 20;

class Messages : public Rig, public testing::WithParamInterface<std::tuple<ibv_qp_type, ibv_wr_opcode, Length>> {
 protected:
  ibv_qp_type type() const { return std::get<0>(GetParam()); }
  ibv_wr_opcode opcode() const { return std::get<1>(GetParam()); }
  std::uint32_t length() const {
    const Length& length = std::get<2>(GetParam());
    return length.mtus * mtu_of(a) + length.bytes;
  }
};

std::string message_name(const testing::TestParamInfo<std::tuple<ibv_qp_type, ibv_wr_opcode, Length>>& which) {
  const auto& [type, opcode, length] = which.param;
  return transport_name(type) + opcode_name(opcode) + "Of" + length.name;
}

const auto kLengths =
    testing::Values(Length{"NoByte", 0, 0}, Length{"OneByte", 0, 1}, Length{"OneMtu", 1, 0},
                    Length{"OneMtuAndAByte", 1, 1}, Length{"ManyMtus", 7, 13}, Length{"AMegabyte", 0, kMegabyte});
INSTANTIATE_TEST_SUITE_P(Reliable, Messages,
                         testing::Combine(testing::Values(IBV_QPT_RC),
                                          testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ), kLengths),
                         message_name);
INSTANTIATE_TEST_SUITE_P(Unreliable, Messages,
                         testing::Combine(testing::Values(IBV_QPT_UC), testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE),
                                          kLengths),
                         message_name);
INSTANTIATE_TEST_SUITE_P(Datagram, Messages,
                         testing::Combine(testing::Values(IBV_QPT_UD), testing::Values(IBV_WR_SEND),
                                          testing::Values(Length{"NoByte", 0, 0}, Length{"OneByte", 0, 1},
                                                          Length{"OneMtu", 1, 0})),
                         message_name);

TEST_P(Messages, ArriveWhole) {
  const Pair pair = connect(type());
  const bool reads = opcode() == IBV_WR_RDMA_READ;
  const Side& source = reads ? b : a;
  const Side& target = reads ? a : b;
  const std::uint32_t grh = type() == IBV_QPT_UD ? kGrhBytes : 0;
  fill(source.memory(), length(), 5);
  target.memory(length() + grh)[0] = 0;
  if (opcode() == IBV_WR_SEND) recv(pair.b, {b.sge(0, length() + grh)});
  Request request{.opcode = opcode(), .sges = {a.sge(0, length())}, .remote = b.address(), .rkey = b.mr()->rkey};
  if (length() == 0) request.sges.clear();
  send(pair.a, request);
  const ibv_wc done = await_success(a.send_cq(), "the request");
  EXPECT_EQ(done.opcode, reads ? IBV_WC_RDMA_READ : opcode() == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
  if (opcode() == IBV_WR_SEND) {
    EXPECT_EQ(await_success(b.recv_cq(), "the message").byte_len, length() + grh);
  } else if (!reads) {
    marker(pair);  // a WRITE's completion alone does not tell that the target's CPU sees the bytes (section 9.5)
  }
  fabric().poll_memory();
  EXPECT_TRUE(has_pattern(target.memory(grh), length(), 5));
  EXPECT_TRUE(is_zero(target.memory(grh + length()), kGuard)) << "behind the message";
}

class LongSends : public EachConnected {};
VERBSCOPE_EACH_CONNECTED(LongSends);

// Long and short messages keep their order.
TEST_P(LongSends, AreNotOvertaken) {
  const Pair pair = connect(type());
  const std::uint32_t lengths[] = {5 * mtu_of(a), 1, 3 * mtu_of(a) + 1, 0, mtu_of(a)};
  std::uint64_t id = 0;
  for (const std::uint32_t length : lengths) {
    recv(pair.b, {b.sge(id * 65536, 65536)}, id);
    fill(a.memory(id * 65536), length, static_cast<unsigned>(id));
    ++id;
  }
  id = 0;
  for (const std::uint32_t length : lengths) {
    send(pair.a, {.sges = {a.sge(id * 65536, length)}, .id = id});
    ++id;
  }
  const std::vector<ibv_wc> received = await(b.recv_cq(), 5, "messages of many lengths");
  ASSERT_EQ(received.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].byte_len, lengths[i]);
    EXPECT_TRUE(has_pattern(b.memory(i * 65536), lengths[i], static_cast<unsigned>(i))) << "message " << i;
  }
}

}  // namespace
}  // namespace verbscope::conformance
