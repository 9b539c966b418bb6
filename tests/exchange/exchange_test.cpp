// The exchange over loopback: handshakes that succeed and fail, and peers that misbehave.
#include "exchange/exchange.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <thread>

#include "tests/exchange/our_side.hpp"
#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using test::kSecret;
using test::our_terms;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr Picos kShort = 50ms;

ExchangeServer our_server(const std::string& secret = kSecret) {
  return {0, our_terms(), secret, "127.0.0.1"};
}

Channel join(int port, const Terms& terms = our_terms(), const std::string& secret = kSecret) {
  return connect_exchange("127.0.0.1", port, terms, secret, kLong);
}

// The messages of both sides of one handshake that is expected to fail.
struct Failures {
  std::string server;
  std::string client;
};
Failures fail_handshake(const Terms& of_client) {
  ExchangeServer server = our_server();
  auto client = std::async(std::launch::async, [&] { return error_of([&] { join(server.port(), of_client); }); });
  Failures failures;
  failures.server = error_of([&] { server.accept(1, kLong); });
  failures.client = client.get();
  return failures;
}

// A connected pair: the server's end and the client's.
struct Pair {
  Pair() {
    auto connecting = std::async(std::launch::async, [&] { return join(server.port()); });
    near = server.accept(1, kLong);
    far.push_back(connecting.get());
  }
  ExchangeServer server = our_server();
  std::vector<Channel> near;
  std::vector<Channel> far;
};

TEST(Exchange, SendsMessagesBothWays) {
  Pair pair;
  pair.near[0].send("endpoints", Json{{"qpn", 5}}, kLong);
  EXPECT_EQ(pair.far[0].receive("endpoints", kLong), (Json{{"qpn", 5}}));
  pair.far[0].send("results", Json::array({1, 2}), kLong);
  EXPECT_EQ(pair.near[0].receive("results", kLong), Json::array({1, 2}));
  EXPECT_EQ(pair.far[0].peer(), fmt::format("127.0.0.1:{}", pair.server.port()));
}

TEST(Exchange, NumbersEveryClient) {
  constexpr int kClients = 3;
  ExchangeServer server(0, our_terms(), kSecret);
  std::vector<std::future<Channel>> connecting;
  for (int i = 0; i < kClients; ++i) {
    connecting.push_back(std::async(
        std::launch::async, [&] { return connect_exchange("localhost", server.port(), our_terms(), kSecret, kLong); }));
  }
  std::vector<Channel> channels = server.accept(kClients, kLong);
  ASSERT_EQ(channels.size(), std::size_t{kClients});
  for (auto& future : connecting) {
    Channel client = future.get();
    EXPECT_EQ(client.clients(), kClients);
    channels.at(static_cast<std::size_t>(client.index())).send("you_are", client.index(), kLong);
    EXPECT_EQ(client.receive("you_are", kLong), client.index());
  }
}

TEST(Exchange, ClientMayStartBeforeTheServer) {
  int port = 0;
  { port = our_server().port(); }
  std::promise<void> started;
  auto client = std::async(std::launch::async, [&] {
    started.set_value();
    return join(port);
  });
  started.get_future().wait();
  ExchangeServer server(port, our_terms(), kSecret, "127.0.0.1");
  EXPECT_EQ(server.accept(1, kLong).size(), 1u);
  EXPECT_EQ(client.get().index(), 0);
}

TEST(Exchange, DifferentParametersFailBothSidesWithBothValues) {
  Terms other = our_terms();
  other.parameters["post_list"] = 4;
  const Failures failures = fail_handshake(other);
  EXPECT_THAT(failures.server, EndsWith(" runs with other parameters: post_list (here 16, there 4)"));
  EXPECT_THAT(failures.client, EndsWith(" runs with other parameters: post_list (here 4, there 16)"));
}

TEST(Exchange, AnotherBenchmarkOrVersionFailsWithBothValues) {
  Terms other = our_terms();
  other.benchmark = "recv_rate";
  other.version = "9";
  const Failures failures = fail_handshake(other);
  EXPECT_THAT(failures.server, HasSubstr("benchmark (here \"send_rate\", there \"recv_rate\")"));
  EXPECT_THAT(failures.client, HasSubstr("version (here \"9\", there \"0.1.0\")"));
}

TEST(Exchange, OtherClientsReceiveTheReason) {
  ExchangeServer server = our_server();
  auto serving = std::async(std::launch::async, [&] { return error_of([&] { server.accept(2, kLong); }); });
  Channel good = join(server.port());
  Terms other = our_terms();
  other.parameters["post_list"] = 4;
  EXPECT_THAT(error_of([&] { join(server.port(), other); }), HasSubstr("post_list"));
  EXPECT_THAT(serving.get(), HasSubstr("post_list"));
  EXPECT_THAT(error_of([&] { good.receive("endpoints", kLong); }),
              AllOf(HasSubstr("gave up"), HasSubstr("post_list (here 16, there 4)")));
}

TEST(Exchange, ServerTimesOutWithoutClients) {
  ExchangeServer server = our_server();
  EXPECT_EQ(error_of([&] { server.accept(2, kShort); }),
            fmt::format("waited 0.05 s for client 1 of 2 on port {}", server.port()));
}

TEST(Exchange, ClientTimesOutIfTheServerDoesNotRespond) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  EXPECT_EQ(error_of([&] { connect_exchange("127.0.0.1", local_port(listener), our_terms(), kSecret, kShort); }),
            fmt::format("waited 0.05 s for message \"challenge\" from 127.0.0.1:{}", local_port(listener)));
}

TEST(Exchange, NamesAMessageOfAnotherType) {
  Pair pair;
  pair.near[0].send("results", 1, kLong);
  EXPECT_THAT(error_of([&] { pair.far[0].receive("endpoints", kLong); }),
              EndsWith("sent message \"results\" instead of message \"endpoints\""));
}

TEST(Exchange, TimeoutNamesTheMessageAndTheTime) {
  Pair pair;
  EXPECT_EQ(error_of([&] { pair.far[0].receive("endpoints", kShort); }),
            fmt::format("waited 0.05 s for message \"endpoints\" from 127.0.0.1:{}", pair.server.port()));
}

TEST(Exchange, DetectsADepartedPeer) {
  Pair pair;
  EXPECT_FALSE(pair.far[0].peer_gone());
  EXPECT_FALSE(pair.near[0].peer_gone());
  pair.near.clear();
  EXPECT_THAT(error_of([&] { pair.far[0].receive("results", kLong); }),
              EndsWith("closed the connection before message \"results\" had arrived"));
  EXPECT_TRUE(pair.far[0].peer_gone());
}

TEST(Exchange, ReadsTheReasonOfADepartedPeer) {
  Pair pair;
  pair.near[0].send("progress", 1, kLong);
  pair.near[0].send_failure("the cat sat on the card");
  pair.near.clear();
  EXPECT_THAT(error_of([&] { pair.far[0].throw_departure(); }), EndsWith("gave up: the cat sat on the card"));
  EXPECT_THROW(pair.far[0].throw_departure(), PeerGone);  // no further message
}

TEST(Exchange, SendToADepartedPeerThrowsItsReason) {
  Pair pair;
  pair.near[0].send_failure("the cat sat on the card");
  pair.near.clear();
  // The first message may leave before the end of the connection is known here.
  EXPECT_THAT(error_of([&] {
                for (int i = 0; i < 1000; ++i) pair.far[0].send("progress", std::string(10'000, 'x'), kLong);
              }),
              EndsWith("gave up: the cat sat on the card"));
}

TEST(Exchange, PutsTheReasonOfAFailureOnOneLine) {
  Pair pair;
  pair.near[0].send_failure("create RC QP on mlx5_0: out of\nluck");
  pair.near.clear();
  EXPECT_THAT(error_of([&] { pair.far[0].receive("results", kLong); }),
              EndsWith(" gave up: create RC QP on mlx5_0: out of\\nluck"));
}

TEST(Exchange, DoesNotSendAMessageOverTheLimit) {
  Pair pair;
  EXPECT_THAT(error_of([&] { pair.near[0].send("results", std::string(kMaxMessage, 'x'), kLong); }),
              HasSubstr("(allowed: up to 1048576)"));
  Terms large = our_terms();
  large.parameters["comment"] = std::string(kMaxHandshakeMessage, 'x');
  auto serving = std::async(std::launch::async, [&] { return error_of([&] { pair.server.accept(1, kShort); }); });
  EXPECT_THAT(error_of([&] { join(pair.server.port(), large); }), HasSubstr("(allowed: up to 65536)"));
}

TEST(Exchange, SecretComesFromTheOptionOrTheEnvironment) {
  unsetenv("VERBSCOPE_SECRET");
  EXPECT_EQ(exchange_secret(""), "");
  setenv("VERBSCOPE_SECRET", "from-environment", 1);
  EXPECT_EQ(exchange_secret(""), "from-environment");
  EXPECT_EQ(exchange_secret("from-option"), "from-option");
  unsetenv("VERBSCOPE_SECRET");
}

}  // namespace
}  // namespace verbscope
