#include "exchange/nexus.hpp"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr Picos kStopCheck = 100ms;  // of the accepting thread
constexpr Picos kWholeMessage = 5s;  // from its first byte; and until a socket takes one
constexpr int kOneAtATime = 1;       // ClientAcceptor::next

}  // namespace

Nexus::Nexus(NexusEvents& events, Terms terms, std::string secret, std::optional<int> port)
    : events_(events), terms_(std::move(terms)), secret_(std::move(secret)) {
  if (port) {
    listener_ = tcp_listen("", *port);
    port_ = local_port(*listener_);
    acceptor_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
  }
  receiver_ = std::jthread([this](const std::stop_token& stop) { receive(stop); });
}

Nexus::~Nexus() {
  acceptor_.request_stop();
  receiver_.request_stop();
  wake_.signal();
}

PeerId Nexus::connect(const std::string& host, int port, Picos timeout) {
  const std::vector<std::jthread> ended = take_ended();
  const std::lock_guard lock(mutex_);
  const PeerId peer = next_++;
  connections_[peer];
  connectors_[peer] = std::jthread([this, peer, host, port, timeout] {
    try {
      add(peer, connect_exchange(host, port, terms_, secret_, timeout));
    } catch (const std::exception& error) {
      fail_connection(peer, error.what());
    }
  });
  return peer;
}

// The threads whose attempt to connect is over. They may still need the lock to end.
std::vector<std::jthread> Nexus::take_ended() {
  const std::lock_guard lock(mutex_);
  std::vector<std::jthread> ended;
  for (auto entry = connectors_.begin(); entry != connectors_.end();) {
    const auto connection = connections_.find(entry->first);
    if (connection != connections_.end() && !connection->second.channel && connection->second.failure.empty()) {
      ++entry;
      continue;
    }
    ended.push_back(std::move(entry->second));
    entry = connectors_.erase(entry);
  }
  return ended;
}

void Nexus::send(PeerId peer, const Message& message) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(peer);
  if (found == connections_.end() || !found->second.failure.empty()) return;
  Connection& connection = found->second;
  if (!connection.channel) return connection.unsent.push_back(message);
  try {
    connection.channel->send(message.type, message.body, kWholeMessage);
  } catch (const std::exception& error) {
    connection.failure = error.what();
    wake_.signal();
  }
}

void Nexus::accept(const std::stop_token& stop) {
  try {
    ClientAcceptor acceptor(*listener_, terms_, secret_, kOneAtATime);
    while (!stop.stop_requested()) {
      std::optional<Channel> channel = acceptor.next(Deadline(kStopCheck));
      if (!channel) continue;
      PeerId peer = 0;
      {
        const std::lock_guard lock(mutex_);
        peer = next_++;
        connections_[peer];
      }
      add(peer, std::move(*channel));
    }
  } catch (const std::exception& error) {
    warn(fmt::format("no further connections are accepted: {}", error.what()));
  }
}

void Nexus::add(PeerId peer, Channel channel) {
  std::vector<Message> unsent;
  {
    const std::lock_guard lock(mutex_);
    Connection& connection = connections_.at(peer);
    connection.channel.emplace(std::move(channel));
    unsent = std::exchange(connection.unsent, {});
  }
  for (const Message& message : unsent) send(peer, message);
  wake_.signal();
}

void Nexus::fail_connection(PeerId peer, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  connections_.at(peer).failure = reason;
  wake_.signal();
}

void Nexus::receive(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> descriptors{{wake_.fd(), POLLIN, 0}};
    std::vector<PeerId> peers;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [peer, connection] : connections_) {
        if (!connection.channel) continue;
        descriptors.push_back({connection.channel->fd(), POLLIN, 0});
        peers.push_back(peer);
      }
    }
    if (poll(descriptors.data(), descriptors.size(), -1) < 0 && errno != EINTR) {
      return warn(fmt::format("poll of the connections: {}", errno_text(errno)));
    }
    if (descriptors[0].revents != 0) wake_.clear();
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (descriptors[i + 1].revents != 0) receive_from(peers[i]);
    }
    report_lost();
  }
}

// Only the receiving thread removes connections, so that the channel stays while no lock is held.
void Nexus::receive_from(PeerId peer) {
  Channel* channel = nullptr;
  {
    const std::lock_guard lock(mutex_);
    channel = &*connections_.at(peer).channel;
  }
  try {
    events_.received(peer, channel->receive_next(kWholeMessage));
  } catch (const std::exception& error) {
    fail_connection(peer, error.what());
  }
}

void Nexus::report_lost() {
  std::vector<std::pair<PeerId, std::string>> lost;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = connections_.begin(); entry != connections_.end();) {
      if (entry->second.failure.empty()) {
        ++entry;
        continue;
      }
      lost.emplace_back(entry->first, entry->second.failure);
      if (entry->second.channel) entry->second.channel->send_failure(entry->second.failure);
      entry = connections_.erase(entry);
    }
  }
  for (const auto& [peer, reason] : lost) events_.lost(peer, reason);
}

}  // namespace verbscope
