#include "exchange/reception.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

// A client of this run has other terms. This ends the run on both sides.
class OtherTerms : public Error {
 public:
  using Error::Error;
};

}  // namespace

Reception::Caller::Caller(Fd its_socket, const std::string& secret, Picos patience)
    : socket(std::move(its_socket)),
      name(peer_name(socket)),
      handshake(secret),
      deadline(patience),
      bytes(kLengthBytes) {}

Reception::Reception(const Fd& listener, const Terms& own, const std::string& secret, int clients, Picos patience)
    : listener_(listener),
      own_(own),
      secret_(secret),
      clients_(clients),
      patience_(patience),
      warnings_(fmt::format("port {}", local_port(listener)), "connections in all were dropped") {}

std::vector<Channel> Reception::receive(const Deadline& deadline) {
  try {
    while (!complete()) {
      if (deadline.poll_ms() == 0) {
        fail("waited {} for client {} of {} on port {}{}", deadline.text(), channels_.size() + 1, clients_,
             local_port(listener_), last_dropped_.empty() ? "" : "; dropped meanwhile: " + last_dropped_);
      }
      turn(deadline);
    }
  } catch (const Error& error) {
    tell_all(error.what());
    throw;
  }
  for (const Caller& caller : callers_) tell_end(caller.socket, kRefused, "the server has all its clients");
  return std::move(channels_);
}

void Reception::turn(const Deadline& deadline) {
  std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
  int wait_ms = deadline.poll_ms();
  for (const Caller& caller : callers_) {
    polled.push_back({caller.socket.get(), POLLIN, 0});
    wait_ms = std::min(wait_ms, caller.deadline.poll_ms());
  }
  if (poll(polled.data(), polled.size(), wait_ms) < 0 && errno != EINTR) throw_errno("poll the exchange", errno);
  auto caller = callers_.begin();
  for (std::size_t i = 1; i < polled.size() && !complete(); ++i) {
    const Place here = caller++;
    if (polled[i].revents != 0 && !hear(here)) continue;
    if (here->deadline.poll_ms() > 0) continue;
    drop(here, fmt::format("waited {} for {}", here->deadline.text(), message_name(here->handshake.awaited())));
  }
  if (polled[0].revents != 0) answer_door();
}

void Reception::answer_door() {
  std::optional<Fd> socket;
  try {
    socket = tcp_accept(listener_, Deadline(Picos(0)));
  } catch (const NoDescriptor& error) {
    // Strangers may hold all descriptors: drops the oldest caller. The new connection is accepted at the next turn.
    if (callers_.empty()) throw;
    return drop(callers_.begin(), error.what());
  }
  if (!socket) return;  // the connection has closed again
  if (callers_.size() == kMaxHandshakes) drop(callers_.begin(), "too many connections at once");
  callers_.emplace_back(std::move(*socket), secret_, patience_);
}

bool Reception::hear(Place place) {
  Caller& caller = *place;
  try {
    const Wait wait{message_name(caller.handshake.awaited()), "it", caller.deadline};
    while (std::size_t got = receive_some(caller.socket, std::span(caller.bytes).subspan(caller.filled), wait)) {
      caller.filled += got;
      if (caller.filled < caller.bytes.size()) continue;
      if (caller.filled == kLengthBytes) {
        caller.bytes.resize(kLengthBytes + parse_length(caller.bytes, kMaxGreeting));
        continue;
      }
      const Message message = parse_message(caller.bytes, kMaxGreeting);
      caller.bytes.assign(kLengthBytes, {});
      caller.filled = 0;
      if (take(caller, message)) continue;
      callers_.erase(place);
      return false;
    }
  } catch (const OtherTerms&) {
    throw;
  } catch (const Error& error) {
    drop(place, printable(error.what()));
    return false;
  }
  return true;
}

bool Reception::take(Caller& caller, const Message& message) {
  const std::optional<Message> answer = caller.handshake.take(message);
  if (!answer) {
    welcome(caller);
    return false;
  }
  send_message(caller.socket, caller.name, *answer, kMaxGreeting, caller.deadline);
  return true;
}

void Reception::welcome(Caller& caller) {
  const int index = static_cast<int>(channels_.size());
  send_message(caller.socket, caller.name, welcome_message({own_, index, clients_}), kMaxGreeting, caller.deadline);
  const std::string mismatch = describe_mismatch(own_, *caller.handshake.terms());
  if (!mismatch.empty()) throw OtherTerms(fmt::format("{} runs something else: {}", caller.name, mismatch));
  channels_.emplace_back(std::move(caller.socket), index, clients_);
}

void Reception::drop(Place caller, const std::string& reason) {
  last_dropped_ = fmt::format("{}: {}", caller->name, reason);
  warnings_.add("dropped a connection from " + last_dropped_);
  tell_end(caller->socket, kRefused, reason);
  callers_.erase(caller);
}

void Reception::tell_all(const std::string& reason) {
  for (Channel& channel : channels_) channel.send_failure(reason);
  for (const Caller& caller : callers_) {
    // Callers that have not proven the secret must not learn any parameter.
    tell_end(caller.socket, kRefused, caller.handshake.proven() ? reason : "the server has given up");
  }
}

}  // namespace verbscope
