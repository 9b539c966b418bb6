// The handshake of the exchange, without sockets: its messages, the proofs in them, and the server's side as a state
// machine that takes one message after another. All input from strangers is checked here.
//
// A proof shows that a side has the secret of the run without sending it. It is the HMAC-SHA256 (RFC 2104), keyed with
// the secret, of the side's role and both nonces. It is invalid in other runs and for the other side.
//
//   client i                                        server
//      | -- hello {protocol, nonce} ---------------> |
//      | <- challenge {nonce} ---------------------- |
//      | -- proof {proof} -------------------------> |  the client has the secret
//      | <- proof {proof} -------------------------- |  and so has the server; no parameter was sent yet
//      | -- terms {terms} -------------------------> |
//      | <- welcome {terms, client i, clients n} --- |  both compare terms: a difference is an error on both sides
//      | <- refused {reason} ----------------------- |  may replace any answer; the server goes on without client i
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exchange/message.hpp"

namespace verbscope {

// 32 random bytes as 64 hexadecimal digits. Throws if the system has no random source.
std::string make_nonce();
// True if `text` is 64 lower-case hexadecimal digits, the form of nonces and proofs.
bool is_digest_text(std::string_view text);

enum class Role { client, server };

struct Nonces {
  std::string client, server;
};

// HMAC-SHA256 of `text`, in hexadecimal.
std::string hmac_sha256(std::string_view key, std::string_view text);
// The proof of the side in `role`.
std::string prove(std::string_view secret, Role role, const Nonces& nonces);
// True if `proof` equals prove(...). Constant time: independent of where they differ.
bool is_proof(std::string_view proof, std::string_view secret, Role role, const Nonces& nonces);

inline constexpr int kExchangeProtocol = 2;

// Types of messages.
inline constexpr const char* kHello = "hello";
inline constexpr const char* kChallenge = "challenge";
inline constexpr const char* kProof = "proof";
inline constexpr const char* kTerms = "terms";
inline constexpr const char* kWelcome = "welcome";
inline constexpr const char* kRefused = "refused";

Message hello_message(const std::string& nonce);
Message proof_message(const std::string& proof);
// The value of the only member of a challenge or proof, which must be named `member`. Throws unless it is 64
// hexadecimal digits.
std::string digest_of(const Message& message, const char* member);

struct Welcome {
  Terms terms;      // the server's
  int client = 0;   // the client's number, 0..clients-1
  int clients = 1;  // number of clients that the server accepts
};
Message welcome_message(const Welcome& welcome);
Welcome parse_welcome(const Message& message);

class ServerHandshake {
 public:
  explicit ServerHandshake(std::string secret, std::string nonce = make_nonce())
      : secret_(std::move(secret)), nonces_{.client = "", .server = std::move(nonce)} {}

  // The type of the next message.
  const char* expected_type() const;
  // Processes a message. Returns the answer; empty after terms, which the welcome answers. Throws the reason if the
  // message is invalid.
  std::optional<Message> take(const Message& message);
  // True once the client has proven the secret.
  bool proven() const { return step_ == Step::terms; }
  // The client's terms, once received.
  const std::optional<Terms>& terms() const { return terms_; }

 private:
  enum class Step { hello, proof, terms };

  Message answer_hello(const Message& hello);
  Message answer_proof(const Message& proof) const;

  std::string secret_;
  Nonces nonces_;
  Step step_ = Step::hello;
  std::optional<Terms> terms_;
};

}  // namespace verbscope
