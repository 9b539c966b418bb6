// TCP with deadlines, on the loopback.
#include "exchange/tcp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Picos kPatience = 30s;
constexpr Picos kImpatience = 50ms;

struct SocketPair {
  SocketPair() : left(tcp_connect("127.0.0.1", local_port(listener), Deadline(kPatience))) {
    right = std::move(*tcp_accept(listener, Deadline(kPatience)));
  }
  Fd listener = tcp_listen("127.0.0.1", 0);
  Fd left;
  Fd right;
};

TEST(Tcp, TheSystemPicksAPortAndPeersAreNamed) {
  SocketPair pair;
  const int port = local_port(pair.listener);
  EXPECT_GT(port, 0);
  EXPECT_EQ(peer_name(pair.left), fmt::format("127.0.0.1:{}", port));
}

TEST(Tcp, EveryAddressServesIpv4Too) {
  const Fd listener = tcp_listen("", 0);
  const Fd client = tcp_connect("127.0.0.1", local_port(listener), Deadline(kPatience));
  const auto server = tcp_accept(listener, Deadline(kPatience));
  ASSERT_TRUE(server);
  EXPECT_THAT(peer_name(*server), testing::StartsWith("127.0.0.1:"));
}

TEST(Tcp, ANameThatOnlyThisMachineTakesForLoopbackMeansEveryAddress) {
  EXPECT_TRUE(means_loopback_here("node1", {"127.0.1.1"}));
  EXPECT_TRUE(means_loopback_here("node1", {"::1", "127.0.0.1"}));
  EXPECT_FALSE(means_loopback_here("node1", {"10.0.0.7", "127.0.1.1"}));
  EXPECT_FALSE(means_loopback_here("localhost", {"::1", "127.0.0.1"}));
  EXPECT_FALSE(means_loopback_here("127.0.0.1", {"127.0.0.1"}));
}

TEST(Tcp, AnAddressIsListenedOnAlone) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  EXPECT_THAT(error_of([&] { tcp_connect("127.0.0.2", local_port(listener), Deadline(kImpatience)); }),
              HasSubstr("Connection refused"));
}

TEST(Tcp, APortInUseIsNamed) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  const int port = local_port(listener);
  EXPECT_EQ(error_of([&] { tcp_listen("127.0.0.1", port); }),
            fmt::format("listen on port {} of 127.0.0.1: Address already in use", port));
}

TEST(Tcp, APortOutOfRangeIsRefused) {
  EXPECT_EQ(error_of([] { tcp_listen("", 65536); }), "port 65536: allowed 0-65535");
  EXPECT_EQ(error_of([] { tcp_connect("127.0.0.1", -1, Deadline(kImpatience)); }), "port -1: allowed 0-65535");
}

TEST(Tcp, NobodyListensUntilTheDeadline) {
  int port = 0;
  {
    const Fd listener = tcp_listen("127.0.0.1", 0);
    port = local_port(listener);
  }
  EXPECT_EQ(error_of([&] { tcp_connect("127.0.0.1", port, Deadline(kImpatience)); }),
            fmt::format("waited 0.05 s for a server on 127.0.0.1 port {}: Connection refused", port));
}

TEST(Tcp, AcceptGivesUpAtTheDeadline) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  EXPECT_FALSE(tcp_accept(listener, Deadline(kImpatience)));
}

TEST(Tcp, MoreThanTheSocketsHoldCrossesWhole) {
  SocketPair pair;
  std::vector<std::byte> sent(8 << 20);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  const Deadline deadline(kPatience);
  std::jthread sender([&] { send_all(pair.left, sent, {"the data", "right", deadline}); });
  std::vector<std::byte> got(sent.size());
  receive_all(pair.right, got, {"the data", "left", deadline});
  EXPECT_EQ(got, sent);
}

TEST(Tcp, ASilentPeerIsNamedWithTheWait) {
  SocketPair pair;
  std::array<std::byte, 4> bytes;
  const Deadline deadline(kImpatience);
  EXPECT_EQ(error_of([&] {
              receive_all(pair.right, bytes, {"the greeting", "left", deadline});
            }),
            "waited 0.05 s for the greeting from left");
}

TEST(Tcp, APeerThatTakesNothingIsNamedWithTheWait) {
  SocketPair pair;
  const std::vector<std::byte> much(64 << 20);
  const Deadline deadline(kImpatience);
  EXPECT_EQ(error_of([&] {
              send_all(pair.left, much, {"the data", "right", deadline});
            }),
            "waited 0.05 s for right to take the data");
}

TEST(Tcp, AClosedPeerRaisesNoSignal) {
  SocketPair pair;
  pair.right = Fd();  // swapped into the temporary, closed
  const std::vector<std::byte> much(1 << 20);
  std::array<std::byte, 4> bytes;
  const Deadline deadline(kPatience);
  EXPECT_EQ(error_of([&] {
              receive_all(pair.left, bytes, {"an answer", "right", deadline});
            }),
            "right closed the connection before an answer had arrived");
  EXPECT_EQ(error_of([&] {
              for (int i = 0; i < 100; ++i) send_all(pair.left, much, {"the data", "right", deadline});
            }),
            "right closed the connection while the data was sent to it");
}

TEST(Tcp, AHangUpIsSeenBehindBytesThatWait) {
  SocketPair pair;
  EXPECT_FALSE(has_hung_up(pair.right));
  send_now(pair.left, std::vector{std::byte{1}});
  EXPECT_FALSE(has_hung_up(pair.right));
  pair.left = Fd();
  std::array<std::byte, 1> byte;
  const Deadline deadline(kPatience);
  receive_all(pair.right, byte, {"a byte", "left", deadline});
  EXPECT_EQ(byte[0], std::byte{1});
  EXPECT_THAT(error_of([&] { receive_all(pair.right, byte, {"a byte", "left", deadline}); }), HasSubstr("closed"));
  EXPECT_TRUE(has_hung_up(pair.right));
}

}  // namespace
}  // namespace verbscope
