#include "exchange/exchange.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr const char* kFailure = "failure";

// A client has the secret but other terms, which ends the run on both sides.
class OtherTerms : public Error {
 public:
  using Error::Error;
};

std::string message_name(std::string_view type) {
  return fmt::format("message \"{}\"", type);
}

void send_message(const Fd& socket, const std::string& peer, const Message& message, std::size_t limit,
                  const Deadline& deadline) {
  send_all(socket, encode_message(message, limit), Wait{message_name(message.type), peer, deadline});
}

// Sends "failure" or "refused" with a reason, which ends the connection. Best effort: never throws, never waits.
void send_end(const Fd& socket, const char* type, std::string_view reason) noexcept {
  try {
    send_now(socket, encode_message({type, Json{{"reason", printable(reason)}}}, kMaxMessage));
  } catch (const std::exception&) {
    return;  // no memory for the message: the peer sees the connection close
  }
}

std::string reason_of(const Message& message) {
  JsonFields fields(message.body, message.type);
  return printable(fields.require<std::string>("reason"));
}

// Returns the next message of any type, `what` being the expected one. Throws for the types that end the connection.
Message receive_any(const Fd& socket, const std::string& peer, std::string_view what, std::size_t limit,
                    const Deadline& deadline) {
  const Wait wait{message_name(what), peer, deadline};
  std::vector<std::byte> bytes(kLengthBytes);
  receive_all(socket, bytes, wait);
  const auto checked = [&peer](auto&& parse) {
    try {
      return parse();
    } catch (const Error& error) {
      fail("{}: {}", peer, printable(error.what()));
    }
  };
  bytes.resize(kLengthBytes + checked([&] { return parse_length(bytes, limit); }));
  receive_all(socket, std::span(bytes).subspan(kLengthBytes), wait);
  Message message = checked([&] { return parse_message(bytes, limit); });
  if (message.type == kFailure) fail("{} gave up: {}", peer, reason_of(message));
  if (message.type == kRefused) fail("{} refused the connection: {}", peer, reason_of(message));
  return message;
}

}  // namespace

Message receive_message(const Fd& socket, const std::string& peer, std::string_view what, std::size_t limit,
                        const Deadline& deadline) {
  Message message = receive_any(socket, peer, what, limit, deadline);
  if (message.type == what) return message;
  fail("{} sent {} instead of {}", peer, message_name(printable(message.type)), message_name(what));
}

Channel::Channel(Fd socket, int index, int clients)
    : socket_(std::move(socket)), peer_(peer_name(socket_)), index_(index), clients_(clients) {}

void Channel::throw_departure() {
  while (true) receive_any(socket_, peer_, "result", kMaxMessage, Deadline(Picos(0)));
}

void Channel::send(std::string_view what, const Json& body, Picos timeout) {
  try {
    send_message(socket_, peer_, {std::string(what), body}, kMaxMessage, Deadline(timeout));
  } catch (const PeerGone&) {
    try {
      throw_departure();
    } catch (const PeerGone&) {
      // The peer sent no reason: the original error is more useful.
    }
    throw;
  }
}

Json Channel::receive(std::string_view what, Picos timeout) {
  return receive_message(socket_, peer_, what, kMaxMessage, Deadline(timeout)).body;
}

Message Channel::receive_next(Picos timeout) {
  return receive_any(socket_, peer_, "message", kMaxMessage, Deadline(timeout));
}

void Channel::send_failure(std::string_view reason) noexcept {
  send_end(socket_, kFailure, reason);
}

bool Channel::peer_gone() const {
  return has_hung_up(socket_);
}

ClientAcceptor::PendingConnection::PendingConnection(Fd its_socket, const std::string& secret, Picos timeout)
    : socket(std::move(its_socket)),
      name(peer_name(socket)),
      handshake(secret),
      deadline(timeout),
      bytes(kLengthBytes) {}

ClientAcceptor::ClientAcceptor(const Fd& listener, const Terms& own, const std::string& secret, int clients,
                               Picos timeout)
    : listener_(listener),
      own_(own),
      secret_(secret),
      clients_(clients),
      timeout_(timeout),
      warnings_(fmt::format("port {}", local_port(listener)), "connections were dropped") {}

std::vector<Channel> ClientAcceptor::receive(const Deadline& deadline) {
  try {
    while (!complete()) {
      if (deadline.poll_ms() == 0) {
        fail("waited {} for client {} of {} on port {}{}", deadline.text(), channels_.size() + 1, clients_,
             local_port(listener_), last_drop_.empty() ? "" : "; last dropped connection: " + last_drop_);
      }
      wait_and_handle(deadline);
    }
  } catch (const Error& error) {
    send_failure_to_all(error.what());
    throw;
  }
  for (const PendingConnection& connection : pending_)
    send_end(connection.socket, kRefused, "the server already has all its clients");
  return std::move(channels_);
}

std::optional<Channel> ClientAcceptor::next(const Deadline& deadline) {
  while (!complete()) {
    if (deadline.poll_ms() == 0) return std::nullopt;
    try {
      wait_and_handle(deadline);
    } catch (const OtherTerms& error) {
      warnings_.add(error.what());  // it leaves as well
    }
  }
  Channel channel = std::move(channels_.back());
  channels_.pop_back();
  return channel;
}

void ClientAcceptor::wait_and_handle(const Deadline& deadline) {
  std::vector<pollfd> descriptors{{listener_.get(), POLLIN, 0}};
  int wait_ms = deadline.poll_ms();
  for (const PendingConnection& connection : pending_) {
    descriptors.push_back({connection.socket.get(), POLLIN, 0});
    wait_ms = std::min(wait_ms, connection.deadline.poll_ms());
  }
  if (poll(descriptors.data(), descriptors.size(), wait_ms) < 0 && errno != EINTR)
    throw_errno("poll the exchange", errno);
  auto connection = pending_.begin();
  for (std::size_t i = 1; i < descriptors.size() && !complete(); ++i) {
    const PendingIterator here = connection++;
    if (descriptors[i].revents != 0 && !read_messages(here)) continue;
    if (here->deadline.poll_ms() > 0) continue;
    drop(here, fmt::format("waited {} for {}", here->deadline.text(), message_name(here->handshake.expected_type())));
  }
  if (descriptors[0].revents != 0) accept_connection();
}

void ClientAcceptor::accept_connection() {
  std::optional<Fd> socket;
  try {
    socket = tcp_accept(listener_, Deadline(Picos(0)));
  } catch (const NoDescriptor& error) {
    // Strangers may hold all descriptors: drops the oldest connection. The next call accepts the new one.
    if (pending_.empty()) throw;
    return drop(pending_.begin(), error.what());
  }
  if (!socket) return;  // the connection has closed again
  if (pending_.size() == kMaxHandshakes) drop(pending_.begin(), "too many connections at once");
  pending_.emplace_back(std::move(*socket), secret_, timeout_);
}

bool ClientAcceptor::read_messages(PendingIterator entry) {
  PendingConnection& connection = *entry;
  try {
    const Wait wait{message_name(connection.handshake.expected_type()), "it", connection.deadline};
    while (std::size_t got =
               receive_some(connection.socket, std::span(connection.bytes).subspan(connection.filled), wait)) {
      connection.filled += got;
      if (connection.filled < connection.bytes.size()) continue;
      if (connection.filled == kLengthBytes) {
        connection.bytes.resize(kLengthBytes + parse_length(connection.bytes, kMaxHandshakeMessage));
        continue;
      }
      const Message message = parse_message(connection.bytes, kMaxHandshakeMessage);
      connection.bytes.assign(kLengthBytes, {});
      connection.filled = 0;
      if (answer(connection, message)) continue;
      pending_.erase(entry);
      return false;
    }
  } catch (const OtherTerms&) {
    throw;
  } catch (const Error& error) {
    drop(entry, printable(error.what()));
    return false;
  }
  return true;
}

bool ClientAcceptor::answer(PendingConnection& connection, const Message& message) {
  const std::optional<Message> reply = connection.handshake.take(message);
  if (!reply) {
    welcome(connection);
    return false;
  }
  send_message(connection.socket, connection.name, *reply, kMaxHandshakeMessage, connection.deadline);
  return true;
}

void ClientAcceptor::welcome(PendingConnection& connection) {
  const int index = static_cast<int>(channels_.size());
  send_message(connection.socket, connection.name, welcome_message({own_, index, clients_}), kMaxHandshakeMessage,
               connection.deadline);
  const std::string mismatch = describe_mismatch(own_, *connection.handshake.terms());
  if (!mismatch.empty()) throw OtherTerms(fmt::format("{} runs with other parameters: {}", connection.name, mismatch));
  channels_.emplace_back(std::move(connection.socket), index, clients_);
}

void ClientAcceptor::drop(PendingIterator connection, const std::string& reason) {
  last_drop_ = fmt::format("{}: {}", connection->name, reason);
  warnings_.add("dropped a connection from " + last_drop_);
  send_end(connection->socket, kRefused, reason);
  pending_.erase(connection);
}

void ClientAcceptor::send_failure_to_all(const std::string& reason) {
  for (Channel& channel : channels_) channel.send_failure(reason);
  for (const PendingConnection& connection : pending_) {
    // A peer that has not proven the secret must not learn any parameter.
    send_end(connection.socket, kRefused, connection.handshake.proven() ? reason : "the server stopped");
  }
}

ExchangeServer::ExchangeServer(int port, Terms terms, std::string secret, const std::string& address)
    : terms_(std::move(terms)),
      secret_(std::move(secret)),
      socket_(tcp_listen(address, port)),
      port_(local_port(socket_)) {}

void ExchangeServer::announce() const {
  if (secret_.empty()) {
    warn(fmt::format("no secret: anyone who reaches port {} may join; set --secret or VERBSCOPE_SECRET", port_));
  }
  print_format(stdout, "listening on port {}\n", port_);
}

std::vector<Channel> ExchangeServer::accept(int clients, Picos timeout) {
  return ClientAcceptor(socket_, terms_, secret_, clients).receive(Deadline(timeout));
}

Channel connect_exchange(const std::string& host, int port, const Terms& terms, const std::string& secret,
                         Picos timeout) {
  const Deadline deadline(timeout);
  Fd socket = tcp_connect(host, port, deadline);
  const std::string peer = peer_name(socket);
  const auto send = [&](const Message& message) {
    send_message(socket, peer, message, kMaxHandshakeMessage, deadline);
  };
  const auto receive = [&](const char* type) {
    return receive_message(socket, peer, type, kMaxHandshakeMessage, deadline);
  };

  Nonces nonces{.client = make_nonce(), .server = ""};
  send(hello_message(nonces.client));
  nonces.server = digest_of(receive(kChallenge), "nonce");
  send(proof_message(prove(secret, Role::client, nonces)));
  if (!is_proof(digest_of(receive(kProof), "proof"), secret, Role::server, nonces)) {
    fail("{} has another secret; set the same --secret or VERBSCOPE_SECRET on all machines", peer);
  }
  send({kTerms, to_json(terms)});
  const Welcome welcome = parse_welcome(receive(kWelcome));
  const std::string mismatch = describe_mismatch(terms, welcome.terms);
  if (!mismatch.empty()) fail("{} runs with other parameters: {}", peer, mismatch);
  return {std::move(socket), welcome.client, welcome.clients};
}

std::string exchange_secret(const std::string& option) {
  if (!option.empty()) return option;
  const char* const from_environment = std::getenv("VERBSCOPE_SECRET");
  return from_environment == nullptr ? "" : from_environment;
}

}  // namespace verbscope
