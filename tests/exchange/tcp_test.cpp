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

constexpr Picos kLongTimeout = 30s;
constexpr Picos kShortTimeout = 50ms;

struct SocketPair {
  SocketPair() : left(tcp_connect("127.0.0.1", local_port(listener), Deadline(kLongTimeout))) {
    right = std::move(*tcp_accept(listener, Deadline(kLongTimeout)));
  }
  Fd listener = tcp_listen("127.0.0.1", 0);
  Fd left;
  Fd right;
};

TEST(Tcp, SystemChoosesAPortAndPeersAreNamed) {
  SocketPair pair;
  const int port = local_port(pair.listener);
  EXPECT_GT(port, 0);
  EXPECT_EQ(peer_name(pair.left), fmt::format("127.0.0.1:{}", port));
}

TEST(Tcp, ListeningOnAllAddressesAcceptsIpv4) {
  const Fd listener = tcp_listen("", 0);
  const Fd client = tcp_connect("127.0.0.1", local_port(listener), Deadline(kLongTimeout));
  const auto server = tcp_accept(listener, Deadline(kLongTimeout));
  ASSERT_TRUE(server);
  EXPECT_THAT(peer_name(*server), testing::StartsWith("127.0.0.1:"));
}

TEST(Tcp, DetectsLocalAliasesOfLoopback) {
  EXPECT_TRUE(is_loopback_alias("node1", {"127.0.1.1"}));
  EXPECT_TRUE(is_loopback_alias("node1", {"::1", "127.0.0.1"}));
  EXPECT_FALSE(is_loopback_alias("node1", {"10.0.0.7", "127.0.1.1"}));
  EXPECT_FALSE(is_loopback_alias("localhost", {"::1", "127.0.0.1"}));
  EXPECT_FALSE(is_loopback_alias("127.0.0.1", {"127.0.0.1"}));
}

TEST(Tcp, ListensOnlyOnTheGivenAddress) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  EXPECT_THAT(error_of([&] { tcp_connect("127.0.0.2", local_port(listener), Deadline(kShortTimeout)); }),
              HasSubstr("Connection refused"));
}

TEST(Tcp, NamesAPortInUse) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  const int port = local_port(listener);
  EXPECT_EQ(error_of([&] { tcp_listen("127.0.0.1", port); }),
            fmt::format("listen on port {} of 127.0.0.1: Address already in use", port));
}

TEST(Tcp, RejectsAPortOutOfRange) {
  EXPECT_EQ(error_of([] { tcp_listen("", 65536); }), "port 65536 (allowed 0-65535)");
  EXPECT_EQ(error_of([] { tcp_connect("127.0.0.1", -1, Deadline(kShortTimeout)); }), "port -1 (allowed 0-65535)");
}

TEST(Tcp, ConnectFailsAtTheDeadlineIfNobodyListens) {
  int port = 0;
  {
    const Fd listener = tcp_listen("127.0.0.1", 0);
    port = local_port(listener);
  }
  EXPECT_EQ(error_of([&] { tcp_connect("127.0.0.1", port, Deadline(kShortTimeout)); }),
            fmt::format("waited 0.05 s for a server on 127.0.0.1 port {}: Connection refused", port));
}

TEST(Tcp, AcceptReturnsEmptyAtTheDeadline) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  EXPECT_FALSE(tcp_accept(listener, Deadline(kShortTimeout)));
}

TEST(Tcp, TransfersMoreThanTheSocketBuffers) {
  SocketPair pair;
  std::vector<std::byte> sent(8 << 20);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  const Deadline deadline(kLongTimeout);
  std::jthread sender([&] { send_all(pair.left, sent, {"the data", "right", deadline}); });
  std::vector<std::byte> got(sent.size());
  receive_all(pair.right, got, {"the data", "left", deadline});
  EXPECT_EQ(got, sent);
}

TEST(Tcp, TimeoutNamesASilentPeer) {
  SocketPair pair;
  std::array<std::byte, 4> bytes;
  const Deadline deadline(kShortTimeout);
  EXPECT_EQ(error_of([&] {
              receive_all(pair.right, bytes, {"the greeting", "left", deadline});
            }),
            "waited 0.05 s for the greeting from left");
}

TEST(Tcp, TimeoutNamesAPeerThatDoesNotRead) {
  SocketPair pair;
  const std::vector<std::byte> much(64 << 20);
  const Deadline deadline(kShortTimeout);
  EXPECT_EQ(error_of([&] {
              send_all(pair.left, much, {"the data", "right", deadline});
            }),
            "waited 0.05 s for right to accept the data");
}

TEST(Tcp, AClosedPeerRaisesNoSignal) {
  SocketPair pair;
  pair.right = Fd();  // swapped into the temporary, closed
  const std::vector<std::byte> much(1 << 20);
  std::array<std::byte, 4> bytes;
  const Deadline deadline(kLongTimeout);
  EXPECT_EQ(error_of([&] {
              receive_all(pair.left, bytes, {"an answer", "right", deadline});
            }),
            "right closed the connection before an answer had arrived");
  EXPECT_EQ(error_of([&] {
              for (int i = 0; i < 100; ++i) send_all(pair.left, much, {"the data", "right", deadline});
            }),
            "right closed the connection while the data was sent to it");
}

TEST(Tcp, DetectsAHangUpBehindUnreadBytes) {
  SocketPair pair;
  EXPECT_FALSE(has_hung_up(pair.right));
  send_now(pair.left, std::vector{std::byte{1}});
  EXPECT_FALSE(has_hung_up(pair.right));
  pair.left = Fd();
  std::array<std::byte, 1> byte;
  const Deadline deadline(kLongTimeout);
  receive_all(pair.right, byte, {"a byte", "left", deadline});
  EXPECT_EQ(byte[0], std::byte{1});
  EXPECT_THAT(error_of([&] { receive_all(pair.right, byte, {"a byte", "left", deadline}); }), HasSubstr("closed"));
  EXPECT_TRUE(has_hung_up(pair.right));
}

}  // namespace
}  // namespace verbscope
