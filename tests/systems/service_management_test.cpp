// The management of a service: its messages, and those that no peer may send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "systems/service/management.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Delivers what a management sends to another one, as peer 1.
class Loop final : public PeerLinks {
 public:
  explicit Loop(Management& to) : to_(to) {}
  PeerId connect(const std::string&) override { return ++connections; }
  void send(PeerId, const Message& message) override {
    sent.push_back(message);
    to_.received(1, message);
  }
  PeerId connections = 0;
  std::vector<Message> sent;

 private:
  Management& to_;
};

Endpoint address() {
  Endpoint endpoint;
  endpoint.qpn = 77;
  endpoint.qkey = 0x1234;
  endpoint.gid = "::ffff:10.9.0.1";
  endpoint.gid_type = "RoCE v2";
  endpoint.global = true;
  endpoint.mtu = 1024;
  endpoint.link_layer = "Ethernet";
  return endpoint;
}

struct Two {
  Two() {
    client.set_links(to_server);
    server.set_links(to_client);
  }
  Management client{2}, server{3};
  Loop to_server{server}, to_client{client};
};

const EndName kClientEnd{1, {5, 0xbeef}};

TEST(Management, BringsQuestionsToTheEndpointAndAnswersToTheThreadThatAsked) {
  Two two;
  EXPECT_TRUE(two.server.mailbox(2).empty());
  two.client.open(9, 2, kClientEnd, address());
  ASSERT_FALSE(two.server.mailbox(2).empty());
  const std::vector<SessionOrder> asked = two.server.mailbox(2).take();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].kind, SessionOrder::Kind::open);
  EXPECT_EQ(asked[0].remote, kClientEnd);
  EXPECT_EQ(asked[0].address, address());
  EXPECT_TRUE(two.server.mailbox(2).empty());

  const EndName server_end{2, {7, 1}};
  two.server.opened(asked[0].peer, kClientEnd, server_end, address());
  const std::vector<SessionOrder> answered = two.client.mailbox(1).take();
  ASSERT_THAT(answered, SizeIs(1));
  EXPECT_EQ(answered[0].kind, SessionOrder::Kind::opened);
  EXPECT_EQ(answered[0].own, kClientEnd.session);
  EXPECT_EQ(answered[0].remote, server_end);

  two.client.close(9, server_end);
  EXPECT_EQ(two.server.mailbox(2).take().at(0).own, server_end.session);
}

TEST(Management, RefusesAnEndpointThatItDoesNotHave) {
  Two two;
  two.client.open(9, 3, kClientEnd, address());
  const std::vector<SessionOrder> answered = two.client.mailbox(1).take();
  ASSERT_THAT(answered, SizeIs(1));
  EXPECT_EQ(answered[0].kind, SessionOrder::Kind::not_opened);
  EXPECT_EQ(answered[0].reason, "endpoint 3: this process has 3");
}

TEST(Management, TellsEveryThreadOfALostConnectionAndConnectsAgain) {
  Two two;
  const PeerId first = two.client.peer_at("host");
  EXPECT_EQ(two.client.peer_at("host"), first);
  two.client.lost(first, "it closed");
  for (const std::uint32_t thread : {0u, 1u}) {
    const std::vector<SessionOrder> orders = two.client.mailbox(thread).take();
    ASSERT_THAT(orders, SizeIs(1));
    EXPECT_EQ(orders[0].kind, SessionOrder::Kind::lost);
    EXPECT_EQ(orders[0].peer, first);
    EXPECT_EQ(orders[0].reason, "it closed");
  }
  EXPECT_NE(two.client.peer_at("host"), first);
}

TEST(Management, RefusesMessagesThatNoPeerSends) {
  Two two;
  two.client.open(9, 2, kClientEnd, address());
  const Message good = two.to_server.sent.at(0);
  const auto refused = [&two](const Message& message) {
    try {
      two.server.received(1, message);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto changed = [&good](const char* key, const Json& value) {
    Message message = good;
    message.body[key] = value;
    return message;
  };
  two.server.mailbox(2).take();
  EXPECT_THAT(refused({"hurry", good.body}), HasSubstr("\"hurry\": not known"));
  EXPECT_THAT(refused({"open", Json::array()}), testing::Not(IsEmpty()));
  EXPECT_THAT(refused(changed("session", Json::array({1, 2}))), HasSubstr("expected [thread, number, epoch]"));
  EXPECT_THAT(refused(changed("session", Json::array({1, 65536, 2}))), HasSubstr("expected [thread, number, epoch]"));
  EXPECT_THAT(refused(changed("endpoint", -1)), HasSubstr("endpoint"));
  EXPECT_THAT(refused(changed("address", "x")), HasSubstr("open"));
  EXPECT_THAT(refused(changed("more", 1)), HasSubstr("more"));
  EXPECT_THAT(refused({"close", Json{{"session", Json::array({3, 0, 0})}}}), HasSubstr("endpoint 3"));
  EXPECT_TRUE(two.server.mailbox(2).empty());
}

}  // namespace
}  // namespace verbscope
