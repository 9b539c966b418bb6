#include "exchange/exchange.hpp"

#include <cstdlib>
#include <utility>

#include "common/error.hpp"
#include "exchange/handshake.hpp"
#include "exchange/reception.hpp"

namespace verbscope {

ExchangeServer::ExchangeServer(int port, Terms terms, std::string secret, const std::string& address)
    : terms_(std::move(terms)),
      secret_(std::move(secret)),
      socket_(tcp_listen(address, port)),
      port_(local_port(socket_)) {}

std::vector<Channel> ExchangeServer::accept(int clients, Picos timeout) {
  return Reception(socket_, terms_, secret_, clients).receive(Deadline(timeout));
}

Channel connect_exchange(const std::string& host, int port, const Terms& terms, const std::string& secret,
                         Picos timeout) {
  const Deadline deadline(timeout);
  Fd socket = tcp_connect(host, port, deadline);
  const std::string peer = peer_name(socket);
  const auto send = [&](const Message& message) { send_message(socket, peer, message, kMaxGreeting, deadline); };
  const auto receive = [&](const char* type) { return receive_message(socket, peer, type, kMaxGreeting, deadline); };

  Nonces nonces{.client = make_nonce(), .server = ""};
  send(hello_message(nonces.client));
  nonces.server = digest_of(receive(kChallenge), "nonce");
  send(proof_message(prove(secret, Role::client, nonces)));
  if (!is_proof(digest_of(receive(kProof), "proof"), secret, Role::server, nonces)) {
    fail("{} does not know the secret (--secret or VERBSCOPE_SECRET)", peer);
  }
  send({kTerms, to_json(terms)});
  const Welcome welcome = parse_welcome(receive(kWelcome));
  const std::string mismatch = describe_mismatch(terms, welcome.terms);
  if (!mismatch.empty()) fail("{} runs something else: {}", peer, mismatch);
  return {std::move(socket), welcome.client, welcome.clients};
}

std::string exchange_secret(const std::string& option) {
  if (!option.empty()) return option;
  const char* const from_environment = std::getenv("VERBSCOPE_SECRET");
  return from_environment == nullptr ? "" : from_environment;
}

}  // namespace verbscope
