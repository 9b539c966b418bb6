// A server drops connections of strangers and accepts its clients.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <span>
#include <thread>

#include "exchange/exchange.hpp"
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
using testing::Not;

// A server that accepts `clients` in a thread of its own.
class AcceptingServer {
 public:
  explicit AcceptingServer(int clients, Picos timeout = kLong, Picos handshake_timeout = kLong) {
    testing::internal::CaptureStderr();
    serving_ = std::async(std::launch::async, [this, clients, timeout, handshake_timeout] {
      channels_ = ClientAcceptor(listener_, terms_, secret_, clients, handshake_timeout).receive(Deadline(timeout));
    });
  }
  ~AcceptingServer() {
    if (!captured_) testing::internal::GetCapturedStderr();
  }

  Fd connect_stranger() { return tcp_connect("127.0.0.1", local_port(listener_), Deadline(kLong)); }
  Fd connect_stranger(const Message& message) {
    Fd stranger = connect_stranger();
    send_now(stranger, encode_message(message, kMaxHandshakeMessage));
    return stranger;
  }
  Channel join(const std::string& secret = kSecret) {
    return connect_exchange("127.0.0.1", local_port(listener_), our_terms(), secret, kLong);
  }
  int port() const { return local_port(listener_); }
  // The error of the acceptor, after its end.
  std::string error() {
    return error_of([this] { serving_.get(); });
  }
  std::string stderr_text() {
    captured_ = true;
    return testing::internal::GetCapturedStderr();
  }
  std::vector<Channel>& channels() { return channels_; }

 private:
  Fd listener_ = tcp_listen("127.0.0.1", 0);
  Terms terms_ = our_terms();
  std::string secret_ = kSecret;
  bool captured_ = false;
  std::vector<Channel> channels_;
  std::future<void> serving_;
};

// The error that the server sends to a stranger.
std::string refusal(const Fd& stranger) {
  return error_of([&] { receive_message(stranger, "the server", "challenge", kMaxHandshakeMessage, Deadline(kLong)); });
}

TEST(ClientAcceptor, SilentConnectionDoesNotDelayClients) {
  AcceptingServer server(1);
  const Fd silent = server.connect_stranger();
  const Channel client = server.join();  // the silent one has kLong
  EXPECT_EQ(server.error(), "(nothing thrown)");
  EXPECT_EQ(client.index(), 0);
  EXPECT_EQ(refusal(silent), "the server refused the connection: the server already has all its clients");
}

TEST(ClientAcceptor, DropsASilentConnectionAfterTheTimeout) {
  AcceptingServer server(1, kLong, 50ms);
  const Fd silent = server.connect_stranger();
  EXPECT_EQ(refusal(silent), "the server refused the connection: waited 0.05 s for message \"hello\"");
  const Fd half = server.connect_stranger(hello_message(make_nonce()));
  receive_message(half, "the server", "challenge", kMaxHandshakeMessage, Deadline(kLong));
  EXPECT_EQ(refusal(half), "the server refused the connection: waited 0.05 s for message \"proof\"");
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
}

TEST(ClientAcceptor, RefusesAWrongSecretAndContinues) {
  AcceptingServer server(1);
  const std::string refused = error_of([&] { server.join("guess"); });
  EXPECT_THAT(
      refused,
      AllOf(
          EndsWith(
              "refused the connection: the secrets differ; set the same --secret or VERBSCOPE_SECRET on all machines"),
          Not(HasSubstr("guess")), Not(HasSubstr("post_list"))));
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
  EXPECT_THAT(server.stderr_text(),
              AllOf(HasSubstr("warning: dropped a connection from 127.0.0.1:"), HasSubstr("the secrets differ"),
                    Not(HasSubstr("guess")), Not(HasSubstr(kSecret))));
}

TEST(ClientAcceptor, DropsPortScanners) {
  AcceptingServer server(1);
  server.connect_stranger();
  const std::vector<std::byte> hello = encode_message(hello_message(make_nonce()), kMaxHandshakeMessage);
  for (const std::size_t size : {std::size_t{3}, std::size_t{4}, hello.size() - 1}) {
    send_now(server.connect_stranger(), std::span(hello).first(size));
  }
  std::this_thread::yield();
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
  const std::string text = server.stderr_text();
  // There is no warning for connections that the server did not read before the client arrived.
  EXPECT_LE(std::ranges::count(text, '\n'), 4) << text;
}

// While it exists, this process can open a descriptor only after it has closed one.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const Fd lowest_free(dup(STDERR_FILENO));
    const rlimit limit{static_cast<rlim_t>(lowest_free.get()), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~NoMoreDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_;
};

TEST(ClientAcceptor, DropsTheOldestConnectionIfDescriptorsRunOut) {
  AcceptingServer server(1);
  const Fd oldest = server.connect_stranger(hello_message(make_nonce()));
  receive_message(oldest, "the server", "challenge", kMaxHandshakeMessage, Deadline(kLong));
  const Fd next(socket(AF_INET, SOCK_STREAM, 0));
  {
    const NoMoreDescriptors none;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(next.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_THAT(refusal(oldest), AllOf(HasSubstr("refused the connection"), HasSubstr("Too many open files")));
    send_now(next, encode_message(hello_message(make_nonce()), kMaxHandshakeMessage));
    receive_message(next, "the server", "challenge", kMaxHandshakeMessage, Deadline(kLong));
  }
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
  EXPECT_THAT(server.stderr_text(), HasSubstr("Too many open files"));
}

TEST(ClientAcceptor, DropsGarbageAfterItsFirstBytes) {
  AcceptingServer server(1);
  for (const char* const garbage : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02junk", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    const Fd stranger = server.connect_stranger();
    send_now(stranger, std::as_bytes(std::span(garbage, std::strlen(garbage))));
    EXPECT_THAT(error_of([&] { receive_message(stranger, "it", "challenge", kMaxHandshakeMessage, Deadline(kLong)); }),
                Not(HasSubstr("nothing thrown")));
  }
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
  const std::string text = server.stderr_text();
  EXPECT_THAT(text, HasSubstr("message length 1195725856 bytes (allowed 1-65536)"));  // "GET "
  EXPECT_EQ(std::ranges::count(text, '\n'), 3) << text;
}

TEST(ClientAcceptor, RefusesAFirstMessageThatIsNoHello) {
  AcceptingServer server(1);
  EXPECT_THAT(refusal(server.connect_stranger({"results", 1})),
              EndsWith("received message \"results\", expected message \"hello\""));
  EXPECT_THAT(refusal(server.connect_stranger({"hello", Json{{"protocol", 7}}})),
              EndsWith("exchange protocols differ: here 2, there 7"));
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
}

TEST(ClientAcceptor, DoesNotReadAGigabyte) {
  AcceptingServer server(1);
  const Fd stranger = server.connect_stranger();
  const std::vector<std::byte> chunk(1 << 20, std::byte{'A'});
  const Deadline deadline(kLong);
  std::size_t sent = 0;
  const std::string end = error_of([&] {
    for (; sent < 1u << 30; sent += chunk.size()) send_all(stranger, chunk, {"junk", "server", deadline});
  });
  EXPECT_EQ(end, "server closed the connection while junk was sent to it");
  EXPECT_LT(sent, 256u << 20);  // no more than the sockets' buffers hold
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
}

TEST(ClientAcceptor, LimitsHandshakesAndWarnings) {
  AcceptingServer server(1);
  std::vector<Fd> strangers;
  for (std::size_t i = 0; i < kMaxHandshakes + 20; ++i) strangers.push_back(server.connect_stranger());
  const Channel client = server.join();
  EXPECT_EQ(server.error(), "(nothing thrown)");
  const std::string text = server.stderr_text();
  EXPECT_THAT(text, HasSubstr("too many connections at once"));
  EXPECT_THAT(text, testing::ContainsRegex("port [0-9]+: in total 2[01] connections were dropped"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 11) << text;  // ten warnings and the total
}

TEST(ClientAcceptor, DeadlineErrorNamesTheLastDroppedConnection) {
  AcceptingServer server(2, 300ms);
  const Channel client = server.join();
  error_of([&] { server.join("guess"); });
  EXPECT_THAT(server.error(),
              AllOf(HasSubstr("waited 0.3 s for client 2 of 2 on port "),
                    HasSubstr("; last dropped connection: 127.0.0.1:"), HasSubstr("the secrets differ")));
}

}  // namespace
}  // namespace verbscope
