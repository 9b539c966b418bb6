// The exchange over loopback: handshakes that agree and that do not, and peers that misbehave.
#include "exchange/exchange.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <span>
#include <thread>

#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Picos kLong = 30s;
constexpr Picos kShort = 50ms;

Hello our_hello() {
  return {"send_rate", "0.1.0", Json{{"post_list", 16}, {"transport", "UD"}}, "s3cret"};
}

// The messages of both sides of one handshake that is expected to fail.
struct Failures {
  std::string server;
  std::string client;
};
Failures shake(const Hello& of_server, const Hello& of_client) {
  ExchangeServer server(0, of_server, "127.0.0.1");
  auto client = std::async(std::launch::async, [&] {
    return error_of([&] { connect_exchange("127.0.0.1", server.port(), of_client, kLong); });
  });
  Failures failures;
  failures.server = error_of([&] { server.accept(1, kLong); });
  failures.client = client.get();
  return failures;
}

// A connected pair: the server's end and the client's.
struct Pair {
  Pair() {
    auto connecting = std::async(std::launch::async,
                                 [&] { return connect_exchange("127.0.0.1", server.port(), our_hello(), kLong); });
    near = server.accept(1, kLong);
    far.push_back(connecting.get());
  }
  ExchangeServer server{0, our_hello(), "127.0.0.1"};
  std::vector<Channel> near;
  std::vector<Channel> far;
};

// The server's complaint about a stranger who sends `bytes` and, if `stay`, keeps the connection.
std::string server_error(const std::vector<std::byte>& bytes, bool stay, Picos timeout) {
  ExchangeServer server(0, our_hello(), "127.0.0.1");
  Fd stranger = tcp_connect("127.0.0.1", server.port(), Deadline(kLong));
  send_now(stranger, bytes);
  if (!stay) stranger = Fd();
  return error_of([&] { server.accept(1, timeout); });
}

TEST(Exchange, MessagesCrossBothWays) {
  Pair pair;
  pair.near[0].send("endpoints", Json{{"qpn", 5}}, kLong);
  EXPECT_EQ(pair.far[0].receive("endpoints", kLong), (Json{{"qpn", 5}}));
  pair.far[0].send("results", Json::array({1, 2}), kLong);
  EXPECT_EQ(pair.near[0].receive("results", kLong), Json::array({1, 2}));
  EXPECT_EQ(pair.far[0].peer(), fmt::format("127.0.0.1:{}", pair.server.port()));
}

TEST(Exchange, EveryClientKnowsItsNumber) {
  constexpr int kClients = 3;
  ExchangeServer server(0, our_hello());
  std::vector<std::future<Channel>> connecting;
  for (int i = 0; i < kClients; ++i) {
    connecting.push_back(std::async(std::launch::async,
                                    [&] { return connect_exchange("localhost", server.port(), our_hello(), kLong); }));
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

TEST(Exchange, AClientMayComeBeforeTheServer) {
  int port = 0;
  { port = ExchangeServer(0, our_hello(), "127.0.0.1").port(); }
  std::promise<void> started;
  auto client = std::async(std::launch::async, [&] {
    started.set_value();
    return connect_exchange("127.0.0.1", port, our_hello(), kLong);
  });
  started.get_future().wait();
  ExchangeServer server(port, our_hello(), "127.0.0.1");
  EXPECT_EQ(server.accept(1, kLong).size(), 1u);
  EXPECT_EQ(client.get().index(), 0);
}

TEST(Exchange, DifferentParametersEndBothSidesWithBothValues) {
  Hello other = our_hello();
  other.parameters["post_list"] = 4;
  const Failures failures = shake(our_hello(), other);
  EXPECT_THAT(failures.server, EndsWith(" runs something else: post_list (here 16, there 4)"));
  EXPECT_THAT(failures.client, EndsWith(" runs something else: post_list (here 4, there 16)"));
}

TEST(Exchange, AnotherBenchmarkOrVersionIsRefusedWithBoth) {
  Hello other = our_hello();
  other.benchmark = "recv_rate";
  other.version = "9";
  const Failures failures = shake(our_hello(), other);
  EXPECT_THAT(failures.server, HasSubstr("benchmark (here \"send_rate\", there \"recv_rate\")"));
  EXPECT_THAT(failures.client, HasSubstr("version (here \"9\", there \"0.1.0\")"));
}

TEST(Exchange, AWrongSecretIsToldToBothAndShownToNone) {
  Hello other = our_hello();
  other.secret = "guess";
  other.parameters["post_list"] = 4;  // not told to a stranger
  const Failures failures = shake(our_hello(), other);
  const auto hidden = AllOf(Not(HasSubstr("s3cret")), Not(HasSubstr("guess")), Not(HasSubstr("post_list")));
  EXPECT_THAT(failures.server, AllOf(HasSubstr("was refused: the secrets differ"), hidden));
  EXPECT_THAT(failures.client, AllOf(HasSubstr("refused this side: the secrets differ"), hidden));
}

TEST(Exchange, AnotherProtocolEndsBothSides) {
  ExchangeServer server(0, our_hello(), "127.0.0.1");
  const Fd stranger = tcp_connect("127.0.0.1", server.port(), Deadline(kLong));
  send_now(stranger, encode_message({"hello", Json{{"protocol", 7}}}, kMaxHello));
  EXPECT_EQ(error_of([&] { server.accept(1, kLong); }), "exchange protocols differ: here 1, there 7");
  std::vector<std::byte> answer(kLengthBytes);
  const Deadline deadline(kLong);
  receive_all(stranger, answer, {"the refusal", "the server", deadline});
  answer.resize(kLengthBytes + parse_length(answer, kMaxMessage));
  receive_all(stranger, std::span(answer).subspan(kLengthBytes), {"the refusal", "the server", deadline});
  EXPECT_EQ(parse_message(answer, kMaxMessage).type, "refused");
}

TEST(Exchange, TheOtherClientsAreToldWhyItEnded) {
  ExchangeServer server(0, our_hello(), "127.0.0.1");
  auto serving = std::async(std::launch::async, [&] { return error_of([&] { server.accept(2, kLong); }); });
  Channel good = connect_exchange("127.0.0.1", server.port(), our_hello(), kLong);
  Hello other = our_hello();
  other.parameters["post_list"] = 4;
  EXPECT_THAT(error_of([&] { connect_exchange("127.0.0.1", server.port(), other, kLong); }), HasSubstr("post_list"));
  EXPECT_THAT(serving.get(), HasSubstr("post_list"));
  EXPECT_THAT(error_of([&] { good.receive("endpoints", kLong); }),
              AllOf(HasSubstr("gave up"), HasSubstr("post_list (here 16, there 4)")));
}

TEST(Exchange, NoClientComes) {
  ExchangeServer server(0, our_hello(), "127.0.0.1");
  EXPECT_EQ(error_of([&] { server.accept(2, kShort); }),
            fmt::format("waited 0.05 s for client 1 of 2 on port {}", server.port()));
}

TEST(Exchange, AServerThatNeverAnswers) {
  const Fd listener = tcp_listen("127.0.0.1", 0);
  EXPECT_EQ(error_of([&] { connect_exchange("127.0.0.1", local_port(listener), our_hello(), kShort); }),
            fmt::format("waited 0.05 s for message \"welcome\" from 127.0.0.1:{}", local_port(listener)));
}

TEST(Exchange, AStrangerWhoSaysNothing) {
  EXPECT_THAT(server_error({}, true, kShort), StartsWith("waited 0.05 s for message \"hello\" from 127.0.0.1:"));
}

TEST(Exchange, AHelloThatIsCut) {
  const std::vector<std::byte> hello = encode_message({"hello", to_json(our_hello())}, kMaxHello);
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{4}, hello.size() - 1}) {
    const std::vector<std::byte> cut(hello.begin(), hello.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(server_error(cut, false, kLong), EndsWith("closed the connection before message \"hello\" had arrived"))
        << size;
  }
}

TEST(Exchange, AFirstMessageThatIsNoHello) {
  EXPECT_THAT(server_error(encode_message({"results", 1}, kMaxHello), true, kLong),
              EndsWith("sent message \"results\" instead of message \"hello\""));
}

TEST(Exchange, AGigabyteEndsInOneLineAndIsNotRead) {
  ExchangeServer server(0, our_hello(), "127.0.0.1");
  std::size_t sent = 0;
  std::string of_stranger;
  std::jthread stranger([&] {
    const Fd socket = tcp_connect("127.0.0.1", server.port(), Deadline(kLong));
    const std::vector<std::byte> chunk(1 << 20, std::byte{'A'});
    const Deadline deadline(kLong);
    of_stranger = error_of([&] {
      for (; sent < 1u << 30; sent += chunk.size()) send_all(socket, chunk, {"junk", "server", deadline});
    });
  });
  const std::string line = error_of([&] { server.accept(1, kLong); });
  stranger.join();
  EXPECT_THAT(line, HasSubstr("a message of 1094795585 bytes was announced, allowed are 1-65536"));  // 0x41414141
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(of_stranger, "server closed the connection while junk was sent to it");
  EXPECT_LT(sent, 256u << 20);  // no more than the sockets' buffers hold
}

TEST(Exchange, TheWrongTypeIsNamed) {
  Pair pair;
  pair.near[0].send("results", 1, kLong);
  EXPECT_THAT(error_of([&] { pair.far[0].receive("endpoints", kLong); }),
              EndsWith("sent message \"results\" instead of message \"endpoints\""));
}

TEST(Exchange, AMessageThatDoesNotComeIsNamedWithTheWait) {
  Pair pair;
  EXPECT_EQ(error_of([&] { pair.far[0].receive("endpoints", kShort); }),
            fmt::format("waited 0.05 s for message \"endpoints\" from 127.0.0.1:{}", pair.server.port()));
}

TEST(Exchange, APeerThatGoesIsSeen) {
  Pair pair;
  EXPECT_FALSE(pair.far[0].peer_gone());
  EXPECT_FALSE(pair.near[0].peer_gone());
  pair.near.clear();
  EXPECT_THAT(error_of([&] { pair.far[0].receive("results", kLong); }),
              EndsWith("closed the connection before message \"results\" had arrived"));
  EXPECT_TRUE(pair.far[0].peer_gone());
}

TEST(Exchange, APeerThatHasGoneIsHeardOut) {
  Pair pair;
  pair.near[0].send("progress", 1, kLong);
  pair.near[0].send_failure("the cat sat on the card");
  pair.near.clear();
  EXPECT_THAT(error_of([&] { pair.far[0].hear_out(); }), EndsWith("gave up: the cat sat on the card"));
  EXPECT_THROW(pair.far[0].hear_out(), PeerGone);  // that was all
}

TEST(Exchange, WhoSendsToAPeerThatHasGoneLearnsItsReason) {
  Pair pair;
  pair.near[0].send_failure("the cat sat on the card");
  pair.near.clear();
  // The first message may leave before the end of the connection is known here.
  EXPECT_THAT(error_of([&] {
                for (int i = 0; i < 1000; ++i) pair.far[0].send("progress", std::string(10'000, 'x'), kLong);
              }),
              EndsWith("gave up: the cat sat on the card"));
}

TEST(Exchange, AFailureTellsItsReasonOnOneLine) {
  Pair pair;
  pair.near[0].send_failure("create RC QP on mlx5_0: out of\nluck");
  pair.near.clear();
  EXPECT_THAT(error_of([&] { pair.far[0].receive("results", kLong); }),
              EndsWith(" gave up: create RC QP on mlx5_0: out of\\nluck"));
}

TEST(Exchange, AMessageOverTheLimitIsNotSent) {
  Pair pair;
  EXPECT_THAT(error_of([&] { pair.near[0].send("results", std::string(kMaxMessage, 'x'), kLong); }),
              HasSubstr("allowed are 1048576"));
  Hello large = our_hello();
  large.parameters["comment"] = std::string(kMaxHello, 'x');
  EXPECT_THAT(error_of([&] { connect_exchange("127.0.0.1", pair.server.port(), large, kLong); }),
              HasSubstr("allowed are 65536"));
}

TEST(Exchange, TheSecretComesFromTheOptionElseFromTheEnvironment) {
  unsetenv("VERBSCOPE_SECRET");
  EXPECT_EQ(exchange_secret(""), "");
  setenv("VERBSCOPE_SECRET", "from-environment", 1);
  EXPECT_EQ(exchange_secret(""), "from-environment");
  EXPECT_EQ(exchange_secret("from-option"), "from-option");
  unsetenv("VERBSCOPE_SECRET");
}

}  // namespace
}  // namespace verbscope
