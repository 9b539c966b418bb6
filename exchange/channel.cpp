#include "exchange/channel.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "exchange/handshake.hpp"

namespace verbscope {

namespace {

constexpr const char* kFailure = "failure";

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
  if (message.type == kRefused) fail("{} refused this side: {}", peer, reason_of(message));
  return message;
}

}  // namespace

std::string message_name(std::string_view type) {
  return fmt::format("message \"{}\"", type);
}

void send_message(const Fd& socket, const std::string& peer, const Message& message, std::size_t limit,
                  const Deadline& deadline) {
  send_all(socket, encode_message(message, limit), Wait{message_name(message.type), peer, deadline});
}

Message receive_message(const Fd& socket, const std::string& peer, std::string_view what, std::size_t limit,
                        const Deadline& deadline) {
  Message message = receive_any(socket, peer, what, limit, deadline);
  if (message.type == what) return message;
  fail("{} sent {} instead of {}", peer, message_name(printable(message.type)), message_name(what));
}

void tell_end(const Fd& socket, const char* type, std::string_view reason) noexcept {
  try {
    send_now(socket, encode_message({type, Json{{"reason", printable(reason)}}}, kMaxMessage));
  } catch (const std::exception&) {
    return;  // no memory for the message: the peer sees the connection close
  }
}

Channel::Channel(Fd socket, int index, int clients)
    : socket_(std::move(socket)), peer_(peer_name(socket_)), index_(index), clients_(clients) {}

void Channel::hear_out() {
  while (true) receive_any(socket_, peer_, "result", kMaxMessage, Deadline(Picos(0)));
}

void Channel::send(std::string_view what, const Json& body, Picos timeout) {
  try {
    send_message(socket_, peer_, {std::string(what), body}, kMaxMessage, Deadline(timeout));
  } catch (const PeerGone&) {
    try {
      hear_out();
    } catch (const PeerGone&) {
      // The peer sent no reason: the original error is more useful.
    }
    throw;
  }
}

Json Channel::receive(std::string_view what, Picos timeout) {
  return receive_message(socket_, peer_, what, kMaxMessage, Deadline(timeout)).body;
}

void Channel::send_failure(std::string_view reason) noexcept {
  tell_end(socket_, kFailure, reason);
}

bool Channel::peer_gone() const {
  return has_hung_up(socket_);
}

}  // namespace verbscope
