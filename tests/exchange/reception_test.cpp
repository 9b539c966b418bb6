// A server whose port strangers find: they are dropped, and the clients come in.
#include "exchange/reception.hpp"

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

// A server that receives `clients` in a thread of its own, with `patience` for each handshake.
class Door {
 public:
  explicit Door(int clients, Picos timeout = kLong, Picos patience = kLong) {
    testing::internal::CaptureStderr();
    serving_ = std::async(std::launch::async, [this, clients, timeout, patience] {
      channels_ = Reception(listener_, terms_, secret_, clients, patience).receive(Deadline(timeout));
    });
  }
  ~Door() {
    if (!told_) testing::internal::GetCapturedStderr();
  }

  Fd knock() { return tcp_connect("127.0.0.1", local_port(listener_), Deadline(kLong)); }
  Fd knock(const Message& message) {
    Fd stranger = knock();
    send_now(stranger, encode_message(message, kMaxGreeting));
    return stranger;
  }
  Channel join(const std::string& secret = kSecret) {
    return connect_exchange("127.0.0.1", local_port(listener_), our_terms(), secret, kLong);
  }
  int port() const { return local_port(listener_); }
  // After the end of the reception: its error, and what standard error was told.
  std::string error() {
    return error_of([this] { serving_.get(); });
  }
  std::string told() {
    told_ = true;
    return testing::internal::GetCapturedStderr();
  }
  std::vector<Channel>& channels() { return channels_; }

 private:
  Fd listener_ = tcp_listen("127.0.0.1", 0);
  Terms terms_ = our_terms();
  std::string secret_ = kSecret;
  bool told_ = false;
  std::vector<Channel> channels_;
  std::future<void> serving_;
};

// The end that a stranger is told of.
std::string farewell(const Fd& stranger) {
  return error_of([&] { receive_message(stranger, "the server", "challenge", kMaxGreeting, Deadline(kLong)); });
}

TEST(Reception, WhoSaysNothingHoldsNobodyUp) {
  Door door(1);
  const Fd silent = door.knock();
  const Channel client = door.join();  // the silent one may stay for kLong
  EXPECT_EQ(door.error(), "(nothing thrown)");
  EXPECT_EQ(client.index(), 0);
  EXPECT_EQ(farewell(silent), "the server refused this side: the server has all its clients");
}

TEST(Reception, SilenceHasItsTime) {
  Door door(1, kLong, 50ms);
  const Fd silent = door.knock();
  EXPECT_EQ(farewell(silent), "the server refused this side: waited 0.05 s for message \"hello\"");
  const Fd half = door.knock(hello_message(make_nonce()));
  receive_message(half, "the server", "challenge", kMaxGreeting, Deadline(kLong));
  EXPECT_EQ(farewell(half), "the server refused this side: waited 0.05 s for message \"proof\"");
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
}

TEST(Reception, AWrongSecretIsRefusedAndTheServerGoesOn) {
  Door door(1);
  const std::string refused = error_of([&] { door.join("guess"); });
  EXPECT_THAT(refused, AllOf(EndsWith("refused this side: the secrets differ (--secret or VERBSCOPE_SECRET)"),
                             Not(HasSubstr("guess")), Not(HasSubstr("post_list"))));
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
  EXPECT_THAT(door.told(), AllOf(HasSubstr("warning: dropped a connection from 127.0.0.1:"),
                                 HasSubstr("the secrets differ"), Not(HasSubstr("guess")), Not(HasSubstr(kSecret))));
}

TEST(Reception, APortScannerIsDropped) {
  Door door(1);
  door.knock();
  const std::vector<std::byte> hello = encode_message(hello_message(make_nonce()), kMaxGreeting);
  for (const std::size_t size : {std::size_t{3}, std::size_t{4}, hello.size() - 1}) {
    send_now(door.knock(), std::span(hello).first(size));
  }
  std::this_thread::yield();
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
  const std::string told = door.told();
  // Those that the server had not looked at when the client was there are not worth a word.
  EXPECT_LE(std::ranges::count(told, '\n'), 4) << told;
}

// While it lives, this process gets no further descriptor, but for those that it gives back.
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

TEST(Reception, WithoutADescriptorTheOldestStrangerMakesRoom) {
  Door door(1);
  const Fd oldest = door.knock(hello_message(make_nonce()));
  receive_message(oldest, "the server", "challenge", kMaxGreeting, Deadline(kLong));
  const Fd next(socket(AF_INET, SOCK_STREAM, 0));
  {
    const NoMoreDescriptors none;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(door.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(next.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_THAT(farewell(oldest), AllOf(HasSubstr("refused this side"), HasSubstr("Too many open files")));
    send_now(next, encode_message(hello_message(make_nonce()), kMaxGreeting));
    receive_message(next, "the server", "challenge", kMaxGreeting, Deadline(kLong));
  }
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
  EXPECT_THAT(door.told(), HasSubstr("Too many open files"));
}

TEST(Reception, GarbageIsDroppedByItsFirstBytes) {
  Door door(1);
  for (const char* const garbage : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02junk", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    const Fd stranger = door.knock();
    send_now(stranger, std::as_bytes(std::span(garbage, std::strlen(garbage))));
    EXPECT_THAT(error_of([&] { receive_message(stranger, "it", "challenge", kMaxGreeting, Deadline(kLong)); }),
                Not(HasSubstr("nothing thrown")));
  }
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
  const std::string told = door.told();
  EXPECT_THAT(told, HasSubstr("a message of 1195725856 bytes was announced, allowed are 1-65536"));  // "GET "
  EXPECT_EQ(std::ranges::count(told, '\n'), 3) << told;
}

TEST(Reception, AFirstMessageThatIsNoHelloIsToldSo) {
  Door door(1);
  EXPECT_THAT(farewell(door.knock({"results", 1})), EndsWith("message \"results\" came instead of message \"hello\""));
  EXPECT_THAT(farewell(door.knock({"hello", Json{{"protocol", 7}}})),
              EndsWith("exchange protocols differ: here 2, there 7"));
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
}

TEST(Reception, AGigabyteIsNotRead) {
  Door door(1);
  const Fd stranger = door.knock();
  const std::vector<std::byte> chunk(1 << 20, std::byte{'A'});
  const Deadline deadline(kLong);
  std::size_t sent = 0;
  const std::string end = error_of([&] {
    for (; sent < 1u << 30; sent += chunk.size()) send_all(stranger, chunk, {"junk", "server", deadline});
  });
  EXPECT_EQ(end, "server closed the connection while junk was sent to it");
  EXPECT_LT(sent, 256u << 20);  // no more than the sockets' buffers hold
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
}

TEST(Reception, ManyStrangersAreNotNamedOneByOneAndHoldNobodyUp) {
  Door door(1);
  std::vector<Fd> strangers;
  for (std::size_t i = 0; i < kMaxHandshakes + 20; ++i) strangers.push_back(door.knock());
  const Channel client = door.join();
  EXPECT_EQ(door.error(), "(nothing thrown)");
  const std::string told = door.told();
  EXPECT_THAT(told, HasSubstr("too many connections at once"));
  EXPECT_THAT(told, testing::ContainsRegex("port [0-9]+: 2[01] connections in all were dropped"));
  EXPECT_EQ(std::ranges::count(told, '\n'), 11) << told;  // ten, and how many in all
}

TEST(Reception, TheErrorAtTheDeadlineTellsWhoWasDroppedLast) {
  Door door(2, 300ms);
  const Channel client = door.join();
  error_of([&] { door.join("guess"); });
  EXPECT_THAT(door.error(), AllOf(HasSubstr("waited 0.3 s for client 2 of 2 on port "),
                                  HasSubstr("; dropped meanwhile: 127.0.0.1:"), HasSubstr("the secrets differ")));
}

}  // namespace
}  // namespace verbscope
