#include "microbench/run/thread_group.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iterator>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

// The longest sleep of the controller if no thread signals and no peer sends or leaves. Each wake-up costs time on a
// core, perhaps one that measures: a wake-up every 1 to 32 ms cost an emulated machine 3 to 10 % of its rates
// (docs/benchmarks.md).
constexpr Picos kLongestSleep = 250ms;
// A timeout without progress is detected late by at most this fraction of it.
constexpr int kChecksPerTimeout = 16;
constexpr Picos kSignOfLife = 1s;
constexpr Picos kMessageCheck = 1ms;  // receivers signal no messages
constexpr Picos kQuiet = 500ms;       // messages that have not arrived after this time are lost

}  // namespace

RunCores::RunCores(const std::vector<int>& named, std::size_t threads, CoreClaims claims) : claims_(std::move(claims)) {
  const std::vector<int> allowed = allowed_cores();
  CoreChoice choice = named.empty() ? claims_.claim_free(allowed, threads) : claims_.claim_named(named, threads);
  if (!choice.contested.empty()) {
    warn(fmt::format("{} {} is in use by another run, and the two slow each other down: {}",
                     choice.contested.size() == 1 ? "core" : "cores", core_list(choice.contested),
                     named.empty() ? "no other core is free" : "give other --cores"));
  }
  threads_ = std::move(choice.cores);
  const auto end = threads_.begin() + static_cast<std::ptrdiff_t>(std::min(threads, threads_.size()));
  std::ranges::copy_if(allowed, std::back_inserter(controller_),
                       [&](int core) { return std::find(threads_.begin(), end, core) == end; });
}

ThreadGroup::ThreadGroup(NodeRun& node, std::vector<Channel>& peers, const RunCores& cores, Picos timeout)
    : node_(node), peers_(peers), cores_(cores), timeout_(timeout), gone_(peers.size()), ids_(node.threads().size()) {}

ThreadGroup::~ThreadGroup() {
  end_threads();
}

void ThreadGroup::start() {
  for (std::size_t t = 0; t < node_.threads().size(); ++t) {
    node_.threads().tally(t).controller = &wake_;
    threads_.emplace_back(cores_.threads().at(t), [this, t](std::stop_token) {
      ids_[t] = gettid();
      HostNode node;
      ThreadTally& tally = node_.threads().tally(t);
      tally.started = node.now();
      node_.threads().workload(t).run(node, control_, tally);
      tally.set_ended();
    });
  }
  controller_cores_.emplace(cores_.controller());
}

std::vector<int> ThreadGroup::thread_ids() const {
  std::vector<int> ids;
  for (const Awaited<int>& id : ids_) {
    id.wait(0);
    ids.push_back(id.load());
  }
  return ids;
}

void ThreadGroup::end_threads() {
  turn(Phase::stop);
  control_.quit = true;
  threads_.clear();
  controller_cores_.reset();
}

bool ThreadGroup::sleep(Picos end, const Channel* awaited, bool silent) {
  fds_.assign({{wake_.fd(), POLLIN, 0}, {awaited == nullptr ? -1 : awaited->fd(), POLLIN, 0}});
  const auto events = static_cast<short>(silent ? POLLIN | POLLRDHUP : POLLRDHUP);
  for (const Channel& peer : peers_) {
    if (&peer != awaited && !gone(peer)) fds_.push_back({peer.fd(), events, 0});
  }
  const Picos longest = std::min(kLongestSleep, timeout_ / kChecksPerTimeout);
  const Picos time = std::clamp(end - TscClock::now(), Picos(0), longest);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  if (::poll(fds_.data(), fds_.size(), static_cast<int>(ms)) < 0 && errno != EINTR) throw_errno("poll", errno);
  wake_.clear();
  return fds_[1].revents != 0;
}

void ThreadGroup::check_all(const Channel* awaited, bool silent) {
  if (const std::string failure = node_.failure(); !failure.empty()) throw Error(failure);
  for (Channel& peer : peers_) {
    if (&peer != awaited && !gone(peer)) check_peer(peer, silent);
  }
}

void ThreadGroup::check_peer(Channel& peer, bool silent) {
  pollfd entry{peer.fd(), POLLIN, 0};
  const bool heard = silent && ::poll(&entry, 1, 0) != 0;
  const bool left = peer.peer_gone();  // after the poll, whose event may be this
  if (!heard && !left) return;
  if (left && mark_gone(peer)) return;
  if (left) peer.throw_departure();
  try {
    peer.receive("nothing", timeout_);  // throws with the peer's reason
  } catch (const Error&) {
    if (!mark_gone(peer)) throw;
  }
}

bool ThreadGroup::mark_gone(const Channel& peer) {
  if (!may_leave_) return false;
  gone_[static_cast<std::size_t>(&peer - peers_.data())] = true;
  if (peers_gone() == peers_.size()) fail("all clients have left; the last was {}", peer.peer());
  return true;
}

std::optional<Json> ThreadGroup::receive_from(Channel& peer, const char* type) {
  if (gone(peer)) return std::nullopt;
  try {
    return await(peer, type);
  } catch (const Error&) {
    if (!node_.failure().empty() || !peer.peer_gone() || !mark_gone(peer)) throw;
    return std::nullopt;
  }
}

void ThreadGroup::send_to(Channel& peer, const char* type, const Json& body) {
  if (gone(peer)) return;
  try {
    peer.send(type, body, timeout_);
  } catch (const Error&) {
    if (!mark_gone(peer)) throw;
  }
}

void ThreadGroup::wait_until(const std::string& what, bool silent, const std::function<bool()>& done, Picos end) {
  Picos moved_at = TscClock::now();
  Picos signaled_at = moved_at;
  std::uint64_t seen = node_.threads().completed();
  while (!done()) {
    check_all(nullptr, silent);
    sleep(std::min(end, each_second_ ? signaled_at + kSignOfLife : Picos::max()), nullptr, silent);
    if (each_second_ && TscClock::now() - signaled_at >= kSignOfLife) {
      signaled_at = TscClock::now();
      each_second_();
    }
    const std::uint64_t completed = node_.threads().completed();
    if (completed != seen) {
      seen = completed;
      moved_at = TscClock::now();
    } else if (node_.threads().counts() && TscClock::now() - moved_at > timeout_) {
      fail("no operation completed for {} s while waiting for {}{}", to_seconds(timeout_), what, node_.why_missing());
    }
  }
}

void ThreadGroup::wait_for(Picos time, const std::string& what) {
  const Picos end = TscClock::now() + time;
  wait_until(
      what, true, [end] { return TscClock::now() >= end; }, end);
}

Json ThreadGroup::await(Channel& peer, const char* type) {
  Picos moved_at = TscClock::now();
  std::uint64_t seen = node_.threads().completed();
  while (!sleep(Picos::max(), &peer, false)) {
    check_all(&peer, false);
    const std::uint64_t completed = node_.threads().completed();
    if (completed != seen) {
      seen = completed;
      moved_at = TscClock::now();
    } else if (TscClock::now() - moved_at > timeout_) {
      fail("no message \"{}\" from peer {} within {} s", type, peer.peer(), to_seconds(timeout_));
    }
  }
  return peer.receive(type, timeout_);
}

void ThreadGroup::await_messages(std::uint64_t expected) {
  Picos moved_at = TscClock::now();
  std::uint64_t seen = node_.threads().received();
  while (seen < expected && TscClock::now() - moved_at < kQuiet) {
    check_all(nullptr, false);
    sleep(TscClock::now() + kMessageCheck, nullptr, false);
    if (node_.threads().received() == seen) continue;
    seen = node_.threads().received();
    moved_at = TscClock::now();
  }
}

}  // namespace verbscope
