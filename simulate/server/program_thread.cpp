#include "simulate/server/program_thread.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbscope::simulate {
namespace {

struct EndsThread {
  explicit EndsThread(bool& done) : ended(done) {}
  EndsThread(const EndsThread&) = delete;
  EndsThread& operator=(const EndsThread&) = delete;
  ~EndsThread() { ended = true; }
  bool& ended;
};

}  // namespace

void ProgramThread::run(SimNode& node, Picos delay) {
  if (ended_) return;
  const EndsThread at_end(ended_);
  thread_ = &node.thread();
  node.watch(nullptr, ~std::size_t{0});  // which memory the program watches is not known
  sleep(node, node.now() + delay, Where::here);
  while (answer(node) && next_request(node)) {
  }
}

void ProgramThread::sleep(SimNode& node, Picos until, Where where) {
  where_ = where;
  node.thread().sync();
  node.thread().sleep(until);
  where_ = Where::here;
}

void ProgramThread::look_again() {
  thread_->end_sleep_at(Picos(0));
}

bool ProgramThread::returns() {
  if (where_ != Where::silent && where_ != Where::blocked) return false;
  if (channel_.turn.load(std::memory_order_acquire) != Turn::simulator) return false;
  if (where_ == Where::silent) {
    thread_->recheck();
  } else {
    thread_->end_sleep_at(Picos(0));
  }
  return true;
}

void ProgramThread::end() {
  if (!ended_ && thread_ != nullptr) thread_->end();
  ended_ = true;
}

bool ProgramThread::next_request(SimNode& node) {
  for (;;) {
    switch (station_.watch(channel_)) {
      case Conduct::asks:
        return true;
      case Conduct::gone:
        return false;
      case Conduct::silent:
        ++silences_.silent;
        where_ = Where::silent;
        node.poll_memory();
        node.idle_until(process_.alarm);
        where_ = Where::here;
        break;
      case Conduct::blocked:
        ++silences_.blocked;
        sleep(node, process_.alarm, Where::blocked);
        break;
    }
    if (node.now() >= process_.alarm && channel_.turn.load() == Turn::program) ring(node);
  }
}

// The timer of the process has run out while its thread works.
void ProgramThread::ring(SimNode& node) {
  process_.alarm = process_.alarm_interval.count() > 0 ? node.now() + process_.alarm_interval : Picos::max();
  syscall(SYS_tgkill, channel_.process, channel_.thread, SIGALRM);
}

bool ProgramThread::answer(SimNode& node) {
  const auto operation = static_cast<Operation>(channel_.operation);
  node.thread().spend(Picos(channel_.spent_ps));
  if (operation == Operation::end) {
    channel_.turn.store(Turn::nobody, std::memory_order_release);
    return false;
  }
  const auto room = std::span(channel_.message);
  // Arguments are read before results are written over them, but for lists of work requests, which have short results.
  Reader in(room.first(std::min<std::size_t>(channel_.bytes, room.size())));
  std::vector<std::byte>& results = requests_.results;
  results.resize(kMessageBytes);
  Writer out(results);
  int error = execute_own(operation, node, in, out);
  if (error == ENOSYS) error = execute(operation, {process_, node, empty_, requests_, in, out});
  std::memcpy(room.data(), &error, sizeof error);
  std::memcpy(room.data() + sizeof error, results.data(), out.size());
  channel_.bytes = static_cast<std::uint32_t>(sizeof error) + out.size();
  channel_.now_ps = node.now().count();
  channel_.signal = 0;
  if (node.now() >= process_.alarm) {
    channel_.signal = SIGALRM;
    process_.alarm = process_.alarm_interval.count() > 0 ? node.now() + process_.alarm_interval : Picos::max();
  }
  station_.give(channel_);
  return true;
}

// Operations that concern time and the operating system. ENOSYS: it is none.
int ProgramThread::execute_own(Operation operation, SimNode& node, Reader& in, Writer& out) {
  switch (operation) {
    case Operation::begin:
      return 0;
    case Operation::spend:
      node.thread().sync();
      return 0;
    case Operation::sleep_until: {
      const Picos until(in.get<std::int64_t>());
      sleep(node, std::min(until, process_.alarm), Where::here);
      return node.now() >= until ? 0 : EINTR;
    }
    case Operation::wait_outside: {
      const Picos until(in.get<std::int64_t>());
      sleep(node, std::min(until, process_.alarm), Where::outside);
      return node.now() >= until ? ETIMEDOUT : 0;
    }
    case Operation::set_alarm: {
      const Picos at(in.get<std::int64_t>());
      const Picos before = process_.alarm;
      out.put(before == Picos::max() ? std::int64_t{0} : std::max<std::int64_t>((before - node.now()).count(), 1));
      out.put(process_.alarm_interval.count());
      process_.alarm = at;
      process_.alarm_interval = Picos(in.get<std::int64_t>());
      return 0;
    }
    default:
      return ENOSYS;
  }
}

}  // namespace verbscope::simulate
