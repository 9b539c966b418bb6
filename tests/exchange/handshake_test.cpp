// The handshake without sockets: the messages that a client must send, and those that need the secret.
#include "exchange/handshake.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/exchange/our_side.hpp"
#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using test::kSecret;
using test::our_terms;
using testing::HasSubstr;

const std::string kClientNonce(64, 'c');
const std::string kServerNonce(64, '5');

// A server that has sent its challenge.
ServerHandshake challenged(const std::string& secret = kSecret) {
  ServerHandshake server(secret, kServerNonce);
  server.take(hello_message(kClientNonce));
  return server;
}

Message client_proof(std::string_view secret, Role role = Role::client, const std::string& nonce = kServerNonce) {
  return proof_message(prove(secret, role, {.client = kClientNonce, .server = nonce}));
}

TEST(Hmac, MatchesRfc4231) {
  // RFC 4231, test cases 2 and 6 (a key longer than a block).
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Nonce, HasTheFormAndIsUnique) {
  const std::string nonce = make_nonce();
  EXPECT_TRUE(is_digest_text(nonce)) << nonce;
  EXPECT_NE(nonce, make_nonce());
  for (const std::string& wrong : {std::string(), nonce.substr(1), nonce + "0", "G" + nonce.substr(1)}) {
    EXPECT_FALSE(is_digest_text(wrong)) << wrong;
  }
}

TEST(Proof, DependsOnSecretRoleAndBothNonces) {
  const Nonces nonces{.client = kClientNonce, .server = kServerNonce};
  const std::string proof = prove(kSecret, Role::client, nonces);
  EXPECT_TRUE(is_proof(proof, kSecret, Role::client, nonces));
  EXPECT_FALSE(is_proof(proof, "guess", Role::client, nonces));
  EXPECT_FALSE(is_proof(proof, kSecret, Role::server, nonces)) << "a peer could return the proof of this side";
  EXPECT_FALSE(is_proof(proof, kSecret, Role::client, {.client = kClientNonce, .server = kClientNonce}));
  EXPECT_FALSE(is_proof(proof, kSecret, Role::client, {.client = kServerNonce, .server = kServerNonce}));
  EXPECT_FALSE(is_proof(proof.substr(1), kSecret, Role::client, nonces));
  EXPECT_FALSE(is_proof("", kSecret, Role::client, nonces));
}

TEST(ServerHandshake, AcceptsAClientWithTheSecretAndProvesItsOwn) {
  ServerHandshake server(kSecret, kServerNonce);
  const auto challenge = server.take(hello_message(kClientNonce));
  ASSERT_TRUE(challenge);
  EXPECT_EQ(digest_of(*challenge, "nonce"), kServerNonce);
  EXPECT_FALSE(server.proven());
  const auto proof = server.take(client_proof(kSecret));
  ASSERT_TRUE(proof);
  EXPECT_TRUE(server.proven());
  EXPECT_TRUE(
      is_proof(digest_of(*proof, "proof"), kSecret, Role::server, {.client = kClientNonce, .server = kServerNonce}));
  EXPECT_FALSE(server.terms());
  EXPECT_FALSE(server.take({"terms", to_json(our_terms())}));
  ASSERT_TRUE(server.terms());
  EXPECT_EQ(server.terms()->benchmark, "send_rate");
}

TEST(ServerHandshake, ProvesNothingToAClientWithoutTheSecret) {
  for (const Message& proof : {client_proof("guess"), client_proof(""), client_proof(kSecret, Role::server),
                               client_proof(kSecret, Role::client, kClientNonce)}) {
    ServerHandshake server = challenged();
    EXPECT_EQ(error_of([&] { server.take(proof); }),
              "the secrets differ; set the same --secret or VERBSCOPE_SECRET on all machines");
    EXPECT_FALSE(server.proven());
  }
  EXPECT_NE(error_of([] { challenged("").take(client_proof(kSecret)); }), "(nothing thrown)");
}

TEST(ServerHandshake, NoMessageContainsTheSecret) {
  ServerHandshake server(kSecret);
  std::string sent = dump_json(hello_message(make_nonce()).body) + dump_json(client_proof(kSecret).body);
  const auto challenge = server.take(hello_message(kClientNonce));
  const std::string nonce = digest_of(*challenge, "nonce");
  sent += dump_json(challenge->body) + dump_json(server.take(client_proof(kSecret, Role::client, nonce))->body);
  sent += dump_json(welcome_message({our_terms(), 0, 1}).body);
  EXPECT_EQ(sent.find(kSecret), sent.npos);
}

TEST(ServerHandshake, RejectsASkippedStep) {
  const Message terms{"terms", to_json(Terms{})};
  EXPECT_EQ(error_of([&] { ServerHandshake(kSecret).take(terms); }),
            "received message \"terms\", expected message \"hello\"");
  EXPECT_EQ(error_of([&] { challenged().take(terms); }), "received message \"terms\", expected message \"proof\"");
  EXPECT_EQ(error_of([&] { challenged().take(hello_message(kClientNonce)); }),
            "received message \"hello\", expected message \"proof\"");
}

TEST(ServerHandshake, ChecksTheProtocolFirst) {
  const Message hello{"hello", Json{{"protocol", 1}, {"secret", "s3cret"}, {"benchmark", "send_rate"}}};
  EXPECT_EQ(error_of([&] { ServerHandshake(kSecret).take(hello); }), "exchange protocols differ: here 2, there 1");
}

TEST(ServerHandshake, RejectsAnInvalidHello) {
  const auto refusal = [](const Json& body) {
    return error_of([&] { ServerHandshake(kSecret).take({"hello", body}); });
  };
  EXPECT_THAT(refusal(3), HasSubstr("expected object"));
  EXPECT_THAT(refusal(Json::object()), HasSubstr("\"protocol\" is missing"));
  EXPECT_THAT(refusal(Json{{"protocol", 2}}), HasSubstr("\"nonce\" is missing"));
  EXPECT_THAT(refusal(Json{{"protocol", 2}, {"nonce", "short"}}), HasSubstr("expected 64 hexadecimal digits"));
  EXPECT_THAT(refusal(Json{{"protocol", 2}, {"nonce", kClientNonce}, {"secret", "x"}}), HasSubstr("unknown key"));
}

TEST(Welcome, RoundTrips) {
  const Welcome got = parse_welcome(welcome_message({our_terms(), 2, 3}));
  EXPECT_EQ(got.terms.benchmark, "send_rate");
  EXPECT_EQ(got.client, 2);
  EXPECT_EQ(got.clients, 3);
}

}  // namespace
}  // namespace verbscope
