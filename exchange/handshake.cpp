#include "exchange/handshake.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/error.hpp"

namespace verbscope {

namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_SIZE>;

std::string hexadecimal(const Digest& bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

std::string make_nonce() {
  Digest bytes;
  if (getentropy(bytes.data(), bytes.size()) != 0) throw_errno("getentropy", errno);
  return hexadecimal(bytes);
}

bool is_digest_text(std::string_view text) {
  return text.size() == 2 * SHA256_DIGEST_SIZE && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  const auto bytes = [](std::string_view some) { return reinterpret_cast<const std::uint8_t*>(some.data()); };
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.size(), bytes(key));
  hmac_sha256_update(&context, text.size(), bytes(text));
  Digest digest;
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return hexadecimal(digest);
}

std::string prove(std::string_view secret, Role role, const Nonces& nonces) {
  return hmac_sha256(secret, fmt::format("verbscope exchange, {}, {}, {}", role == Role::client ? "client" : "server",
                                         nonces.client, nonces.server));
}

bool is_proof(std::string_view proof, std::string_view secret, Role role, const Nonces& nonces) {
  const std::string right = prove(secret, role, nonces);
  return proof.size() == right.size() && memeql_sec(proof.data(), right.data(), right.size()) != 0;
}

namespace {

constexpr int kMaxClients = 1 << 20;

std::string digest_member(JsonFields& fields, const char* member) {
  auto text = fields.require<std::string>(member);
  if (!is_digest_text(text)) fields.fail_key(member, "expected 64 hexadecimal digits");
  return text;
}

}  // namespace

Message hello_message(const std::string& nonce) {
  return {kHello, Json{{"protocol", kExchangeProtocol}, {"nonce", nonce}}};
}

Message proof_message(const std::string& proof) {
  return {kProof, Json{{"proof", proof}}};
}

std::string digest_of(const Message& message, const char* member) {
  JsonFields fields(message.body, message.type);
  std::string digest = digest_member(fields, member);
  fields.reject_unknown();
  return digest;
}

Message welcome_message(const Welcome& welcome) {
  return {kWelcome, Json{{"terms", to_json(welcome.terms)}, {"client", welcome.client}, {"clients", welcome.clients}}};
}

Welcome parse_welcome(const Message& message) {
  JsonFields fields(message.body, message.type);
  Welcome welcome{parse_terms(fields.at("terms")), fields.require<int>("client", 0, kMaxClients),
                  fields.require<int>("clients", 1, kMaxClients)};
  fields.reject_unknown();
  return welcome;
}

Message ServerHandshake::answer_hello(const Message& hello) {
  JsonFields fields(hello.body, hello.type);
  // Checked first, because a hello of another protocol has other members.
  const auto protocol = fields.require<std::int64_t>("protocol");
  if (protocol != kExchangeProtocol) {
    fail("exchange protocols differ: here {}, there {}", kExchangeProtocol, protocol);
  }
  nonces_.client = digest_member(fields, "nonce");
  fields.reject_unknown();
  return {kChallenge, Json{{"nonce", nonces_.server}}};
}

Message ServerHandshake::answer_proof(const Message& proof) const {
  if (!is_proof(digest_of(proof, "proof"), secret_, Role::client, nonces_)) {
    fail("the secrets differ; set the same --secret or VERBSCOPE_SECRET on all machines");
  }
  return proof_message(prove(secret_, Role::server, nonces_));
}

const char* ServerHandshake::expected_type() const {
  return step_ == Step::hello ? kHello : step_ == Step::proof ? kProof : kTerms;
}

std::optional<Message> ServerHandshake::take(const Message& message) {
  if (message.type != expected_type()) {
    fail("received message \"{}\", expected message \"{}\"", printable(message.type), expected_type());
  }
  std::optional<Message> answer;
  switch (step_) {
    case Step::hello:
      answer = answer_hello(message);
      step_ = Step::proof;
      break;
    case Step::proof:
      answer = answer_proof(message);
      step_ = Step::terms;
      break;
    case Step::terms:
      terms_ = parse_terms(message.body);
      break;
  }
  return answer;
}

}  // namespace verbscope
