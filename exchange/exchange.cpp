#include "exchange/exchange.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <span>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr const char* kHello = "hello";
constexpr const char* kWelcome = "welcome";
constexpr const char* kRefused = "refused";
constexpr const char* kFailure = "failure";
constexpr const char* kWrongSecret = "the secrets differ (--secret or VERBSCOPE_SECRET)";

std::string named(std::string_view what) {
  return fmt::format("message \"{}\"", what);
}

Json welcome_body(Hello hello, int index, int clients) {
  hello.secret.clear();
  return Json{{"hello", to_json(hello)}, {"client", index}, {"clients", clients}};
}

std::string reason_of(const Message& message) {
  JsonFields fields(message.body, message.type);
  return printable(fields.require<std::string>("reason"));
}

void check_agreement(const Hello& mine, const Hello& other, const std::string& peer) {
  const std::string mismatch = describe_mismatch(mine, other);
  if (!mismatch.empty()) fail("{} runs something else: {}", peer, mismatch);
}

}  // namespace

Channel::Channel(Fd socket) : socket_(std::move(socket)), peer_(peer_name(socket_)) {}

void Channel::send_message(const Message& message, std::size_t limit, const Deadline& deadline) {
  send_all(socket_, encode_message(message, limit), Wait{named(message.type), peer_, deadline});
}

Message Channel::receive_any(std::string_view what, std::size_t limit, const Deadline& deadline) {
  const Wait wait{named(what), peer_, deadline};
  std::vector<std::byte> bytes(kLengthBytes);
  receive_all(socket_, bytes, wait);
  const auto checked = [this](auto&& parse) {
    try {
      return parse();
    } catch (const Error& error) {
      fail("{}: {}", peer_, printable(error.what()));
    }
  };
  bytes.resize(kLengthBytes + checked([&] { return parse_length(bytes, limit); }));
  receive_all(socket_, std::span(bytes).subspan(kLengthBytes), wait);
  Message message = checked([&] { return parse_message(bytes, limit); });
  if (message.type == kFailure) fail("{} gave up: {}", peer_, reason_of(message));
  if (message.type == kRefused) fail("{} refused this side: {}", peer_, reason_of(message));
  return message;
}

Message Channel::receive_message(std::string_view what, std::size_t limit, const Deadline& deadline) {
  Message message = receive_any(what, limit, deadline);
  if (message.type != what) fail("{} sent {} instead of {}", peer_, named(printable(message.type)), named(what));
  return message;
}

void Channel::hear_out() {
  while (true) receive_any("result", kMaxMessage, Deadline(Picos(0)));
}

void Channel::send(std::string_view what, const Json& body, Picos timeout) {
  try {
    send_message({std::string(what), body}, kMaxMessage, Deadline(timeout));
  } catch (const PeerGone&) {
    try {
      hear_out();
    } catch (const PeerGone&) {
      // The peer gave no reason: what failed here says more.
    }
    throw;
  }
}

Json Channel::receive(std::string_view what, Picos timeout) {
  return receive_message(what, kMaxMessage, Deadline(timeout)).body;
}

void Channel::tell(const char* type, std::string_view reason) noexcept {
  try {
    send_now(socket_, encode_message({type, Json{{"reason", printable(reason)}}}, kMaxMessage));
  } catch (const std::exception&) {
    return;  // no memory for the message: the peer will see the connection close
  }
}

void Channel::send_failure(std::string_view reason) noexcept {
  tell(kFailure, reason);
}

bool Channel::peer_gone() const {
  return has_hung_up(socket_);
}

ExchangeServer::ExchangeServer(int port, Hello hello, const std::string& address)
    : hello_(std::move(hello)), socket_(tcp_listen(address, port)), port_(local_port(socket_)) {}

Channel ExchangeServer::accept_one(int index, int clients, const Deadline& deadline) {
  auto socket = tcp_accept(socket_, deadline);
  if (!socket) fail("waited {} for client {} of {} on port {}", deadline.text(), index + 1, clients, port_);
  Channel channel(std::move(*socket));
  channel.index_ = index;
  channel.clients_ = clients;
  Hello theirs;
  try {
    theirs = parse_hello(channel.receive_message(kHello, kMaxHello, deadline).body);
  } catch (const Error& error) {
    channel.tell(kRefused, error.what());
    throw;
  }
  if (!same_secret(hello_.secret, theirs.secret)) {
    channel.tell(kRefused, kWrongSecret);
    fail("{} was refused: {}", channel.peer(), kWrongSecret);
  }
  channel.send_message({kWelcome, welcome_body(hello_, index, clients)}, kMaxMessage, deadline);
  check_agreement(hello_, theirs, channel.peer());
  return channel;
}

std::vector<Channel> ExchangeServer::accept(int clients, Picos timeout) {
  const Deadline deadline(timeout);
  std::vector<Channel> channels;
  try {
    while (std::cmp_less(channels.size(), clients)) {
      channels.push_back(accept_one(static_cast<int>(channels.size()), clients, deadline));
    }
  } catch (const Error& error) {
    for (Channel& channel : channels) channel.send_failure(error.what());
    throw;
  }
  return channels;
}

Channel connect_exchange(const std::string& host, int port, const Hello& hello, Picos timeout) {
  const Deadline deadline(timeout);
  Channel channel(tcp_connect(host, port, deadline));
  channel.send_message({kHello, to_json(hello)}, kMaxHello, deadline);
  const Message welcome = channel.receive_message(kWelcome, kMaxMessage, deadline);
  JsonFields fields(welcome.body, kWelcome);
  const Hello theirs = parse_hello(fields.at("hello"));
  channel.index_ = fields.require<int>("client", 0, 1 << 20);
  channel.clients_ = fields.require<int>("clients", 1, 1 << 20);
  fields.reject_unknown();
  check_agreement(hello, theirs, channel.peer());
  return channel;
}

std::string exchange_secret(const std::string& option) {
  if (!option.empty()) return option;
  const char* const from_environment = std::getenv("VERBSCOPE_SECRET");
  return from_environment == nullptr ? "" : from_environment;
}

}  // namespace verbscope
