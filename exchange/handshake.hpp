// The handshake of the exchange, apart from sockets: its messages, and the server's part of it as a machine that takes
// one message after another. Everything that a stranger can send is checked here.
//
//   client i                                        server
//      | -- hello {protocol, nonce} ---------------> |
//      | <- challenge {nonce} ---------------------- |
//      | -- proof {proof} -------------------------> |  the client knows the secret
//      | <- proof {proof} -------------------------- |  and so does the server; neither has told a parameter yet
//      | -- terms {terms} -------------------------> |
//      | <- welcome {terms, client i, clients n} --- |  both compare terms: a difference ends both with both values
//      | <- refused {reason} ----------------------- |  instead of any answer: the server goes on without this client
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exchange/message.hpp"
#include "exchange/proof.hpp"
#include "exchange/terms.hpp"

namespace verbscope {

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
// The value of the one member of a challenge or a proof, which is called like `member`. Throws unless it is 64
// hexadecimal digits.
std::string digest_of(const Message& message, const char* member);

struct Welcome {
  Terms terms;      // the server's
  int client = 0;   // the client's number, 0..clients-1
  int clients = 1;  // how many the server takes in all
};
Message welcome_message(const Welcome& welcome);
Welcome parse_welcome(const Message& message);

class ServerHandshake {
 public:
  explicit ServerHandshake(std::string secret, std::string nonce = make_nonce())
      : secret_(std::move(secret)), nonces_{.client = "", .server = std::move(nonce)} {}

  // The type of the message that must come next.
  const char* awaited() const;
  // Takes it. Returns the answer; none to terms, which the welcome answers. Throws what is wrong with the client.
  std::optional<Message> take(const Message& message);
  // The client has shown that it knows the secret.
  bool proven() const { return step_ == Step::terms; }
  // The client's terms, when they have come.
  const std::optional<Terms>& terms() const { return terms_; }

 private:
  enum class Step { hello, proof, terms };

  Message greet(const Message& hello);
  Message prove_to(const Message& proof) const;

  std::string secret_;
  Nonces nonces_;
  Step step_ = Step::hello;
  std::optional<Terms> terms_;
};

}  // namespace verbscope
