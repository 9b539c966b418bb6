#include "exchange/handshake.hpp"

#include "common/error.hpp"

namespace verbscope {

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

Message ServerHandshake::greet(const Message& hello) {
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

Message ServerHandshake::prove_to(const Message& proof) const {
  if (!is_proof(digest_of(proof, "proof"), secret_, Role::client, nonces_)) {
    fail("the secrets differ (--secret or VERBSCOPE_SECRET)");
  }
  return proof_message(prove(secret_, Role::server, nonces_));
}

const char* ServerHandshake::awaited() const {
  return step_ == Step::hello ? kHello : step_ == Step::proof ? kProof : kTerms;
}

std::optional<Message> ServerHandshake::take(const Message& message) {
  if (message.type != awaited()) {
    fail("message \"{}\" came instead of message \"{}\"", printable(message.type), awaited());
  }
  std::optional<Message> answer;
  switch (step_) {
    case Step::hello:
      answer = greet(message);
      step_ = Step::proof;
      break;
    case Step::proof:
      answer = prove_to(message);
      step_ = Step::terms;
      break;
    case Step::terms:
      terms_ = parse_terms(message.body);
      break;
  }
  return answer;
}

}  // namespace verbscope
