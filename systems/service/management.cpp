#include "systems/service/management.hpp"

#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr const char* kOpen = "open";
constexpr const char* kOpened = "opened";
constexpr const char* kNotOpened = "not_opened";
constexpr const char* kClose = "close";

Json to_json(const EndName& name) {
  return Json::array({name.thread, name.session.number, name.session.epoch});
}

EndName end_name(JsonFields& fields, const std::string& key) {
  const auto numbers = fields.require<std::vector<std::uint32_t>>(key);
  if (numbers.size() != 3 || numbers[1] > 0xffff || numbers[2] > 0xffff) {
    fields.fail_key(key, "expected [thread, number, epoch]");
  }
  return {numbers[0], {static_cast<std::uint16_t>(numbers[1]), static_cast<std::uint16_t>(numbers[2])}};
}

}  // namespace

void Mailbox::put(SessionOrder order) {
  const std::lock_guard lock(mutex_);
  orders_.push_back(std::move(order));
  filled_.store(true, std::memory_order_relaxed);
}

std::vector<SessionOrder> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  filled_.store(false, std::memory_order_relaxed);
  return std::exchange(orders_, {});
}

void Management::stop() {
  for (Mailbox& mailbox : mailboxes_) mailbox.put({.kind = SessionOrder::Kind::stop});
}

PeerId Management::peer_at(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(address);
  return found != peers_.end() ? found->second : peers_[address] = links_->connect(address);
}

void Management::open(PeerId peer, std::uint32_t endpoint, const EndName& own, const Endpoint& address) {
  links_->send(peer, {kOpen, Json{{"endpoint", endpoint}, {"session", to_json(own)}, {"address", to_json(address)}}});
}
void Management::opened(PeerId peer, const EndName& theirs, const EndName& own, const Endpoint& address) {
  links_->send(peer,
               {kOpened, Json{{"session", to_json(theirs)}, {"remote", to_json(own)}, {"address", to_json(address)}}});
}
void Management::not_opened(PeerId peer, const EndName& theirs, const std::string& reason) {
  links_->send(peer, {kNotOpened, Json{{"session", to_json(theirs)}, {"reason", printable(reason)}}});
}
void Management::close(PeerId peer, const EndName& theirs) {
  links_->send(peer, {kClose, Json{{"session", to_json(theirs)}}});
}

void Management::received(PeerId peer, const Message& message) {
  JsonFields fields(message.body, message.type);
  const EndName session = end_name(fields, "session");
  SessionOrder order{.peer = peer};
  std::uint32_t thread = session.thread;
  order.own = session.session;
  if (message.type == kOpen) {
    order.kind = SessionOrder::Kind::open;
    order.remote = session;
    thread = fields.require<std::uint32_t>("endpoint");
    order.address = endpoint_from_json(fields.at("address"), kOpen);
  } else if (message.type == kOpened) {
    order.kind = SessionOrder::Kind::opened;
    order.remote = end_name(fields, "remote");
    order.address = endpoint_from_json(fields.at("address"), kOpened);
  } else if (message.type == kNotOpened) {
    order.kind = SessionOrder::Kind::not_opened;
    order.reason = printable(fields.require<std::string>("reason"));
  } else if (message.type == kClose) {
    order.kind = SessionOrder::Kind::close;
  } else {
    fail("message \"{}\": not known", printable(message.type));
  }
  fields.reject_unknown();
  if (thread < mailboxes_.size()) return mailboxes_[thread].put(std::move(order));
  const std::string reason = fmt::format("endpoint {}: this process has {}", thread, mailboxes_.size());
  if (order.kind != SessionOrder::Kind::open) fail("{}", reason);
  not_opened(peer, session, reason);
}

// The address is forgotten first: whoever gets the connection from peer_at() before that finds the order.
void Management::lost(PeerId peer, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(peers_, [peer](const auto& entry) { return entry.second == peer; });
  }
  for (Mailbox& mailbox : mailboxes_) {
    mailbox.put({.kind = SessionOrder::Kind::lost, .peer = peer, .reason = reason});
  }
}

}  // namespace verbscope
