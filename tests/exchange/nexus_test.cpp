// The nexus of a process: connections that come and go, over loopback.
#include "exchange/nexus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "tests/exchange/our_side.hpp"

namespace verbscope {
namespace {

using test::kLong;
using test::kSecret;
using test::our_terms;
using testing::ElementsAre;
using testing::HasSubstr;

// What a nexus reported, as text, and the peers in the order of their first message.
class Reports final : public NexusEvents {
 public:
  void received(PeerId peer, const Message& message) override {
    if (message.type == "bad") fail("a bad message");
    const std::lock_guard lock(mutex_);
    peers_.push_back(peer);
    texts_.push_back(message.type + " " + message.body.get<std::string>());
    changed_.notify_all();
  }
  void lost(PeerId, const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    texts_.push_back("lost: " + reason);
    changed_.notify_all();
  }
  // The first `count` reports.
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    const bool all = changed_.wait_for(lock, std::chrono::duration_cast<std::chrono::nanoseconds>(kLong),
                                       [&] { return texts_.size() >= count; });
    EXPECT_TRUE(all) << "waited for report " << count;
    return texts_;
  }
  PeerId peer(std::size_t index) {
    wait_for(index + 1);
    return peers_.at(index);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<PeerId> peers_;
  std::vector<std::string> texts_;
};

struct Process {
  explicit Process(std::optional<int> port, const std::string& secret = kSecret, const Terms& terms = our_terms())
      : nexus(std::make_unique<Nexus>(reports, terms, secret, port)) {}
  PeerId connect(const Process& to, Picos timeout = kLong) const {
    return nexus->connect("127.0.0.1", to.nexus->port(), timeout);
  }
  Reports reports;
  std::unique_ptr<Nexus> nexus;
};

TEST(Nexus, CarriesMessagesBothWaysAlsoThoseSentBeforeTheConnection) {
  Process server(0), client(std::nullopt);
  const PeerId peer = client.connect(server);
  client.nexus->send(peer, {"ask", "1"});
  client.nexus->send(peer, {"ask", "2"});
  EXPECT_THAT(server.reports.wait_for(2), ElementsAre("ask 1", "ask 2"));
  server.nexus->send(server.reports.peer(0), {"answer", "3"});
  EXPECT_THAT(client.reports.wait_for(1), ElementsAre("answer 3"));
}

TEST(Nexus, ServesSeveralPeers) {
  Process server(0), first(std::nullopt), second(std::nullopt);
  first.nexus->send(first.connect(server), {"ask", "1"});
  server.reports.wait_for(1);
  second.nexus->send(second.connect(server), {"ask", "2"});
  EXPECT_NE(server.reports.peer(0), server.reports.peer(1));
  server.nexus->send(server.reports.peer(1), {"answer", "2"});
  server.nexus->send(server.reports.peer(0), {"answer", "1"});
  EXPECT_THAT(first.reports.wait_for(1), ElementsAre("answer 1"));
  EXPECT_THAT(second.reports.wait_for(1), ElementsAre("answer 2"));
}

TEST(Nexus, ReportsAPeerThatEnds) {
  Process server(0), client(std::nullopt);
  client.nexus->send(client.connect(server), {"ask", "1"});
  const PeerId peer = server.reports.peer(0);
  client.nexus.reset();
  EXPECT_THAT(server.reports.wait_for(2).back(), HasSubstr("closed the connection"));
  server.nexus->send(peer, {"answer", "1"});  // dropped
  Process again(std::nullopt);
  again.nexus->send(again.connect(server), {"ask", "2"});
  EXPECT_EQ(server.reports.wait_for(3).back(), "ask 2");
}

TEST(Nexus, ReportsThatNobodyListens) {
  Process client(std::nullopt);
  int port = 0;
  {
    const Process gone(0);
    port = gone.nexus->port();
  }
  client.nexus->connect("127.0.0.1", port, std::chrono::milliseconds(50));
  EXPECT_THAT(client.reports.wait_for(1).front(), HasSubstr("lost: waited 0.05 s for a server on 127.0.0.1"));
}

TEST(Nexus, RefusesAnotherSecretOrOtherTermsAndServesTheNext) {
  Process server(0), stranger(std::nullopt, "another");
  stranger.connect(server);
  EXPECT_THAT(stranger.reports.wait_for(1).front(), HasSubstr("secret"));
  Terms terms = our_terms();
  terms.parameters["post_list"] = 4;
  Process other(std::nullopt, kSecret, terms);
  other.connect(server);
  EXPECT_THAT(other.reports.wait_for(1).front(), HasSubstr("post_list (here 4, there 16)"));
  Process client(std::nullopt);
  client.nexus->send(client.connect(server), {"ask", "1"});
  EXPECT_THAT(server.reports.wait_for(1), ElementsAre("ask 1"));
}

TEST(Nexus, EndsAConnectionWithAMessageThatIsRefused) {
  Process server(0), client(std::nullopt);
  client.nexus->send(client.connect(server), {"bad", "1"});
  EXPECT_THAT(server.reports.wait_for(1), ElementsAre("lost: a bad message"));
  EXPECT_THAT(client.reports.wait_for(1).front(), HasSubstr("gave up: a bad message"));
}

}  // namespace
}  // namespace verbscope
