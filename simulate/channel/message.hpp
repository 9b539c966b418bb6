// What a program's thread asks of the simulator, and how arguments and results are laid out in the channel: values one
// behind the other, as in memory, because both ends are of one build.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "simulate/channel/channel.hpp"

namespace verbscope::simulate {

// Pointers of verbs objects travel as numbers: `handle` of the object's libibverbs structure.
enum class Operation : std::uint32_t {
  begin,  // the first request of a thread
  end,    // the thread ends, and wakes those that wait for an address: there is no answer
  spend,  // time has passed
  await_memory,  // the thread spins in a loop that only others can end, by a write to memory
  sleep_until,
  look_outside,  // lets other threads do what they do before now, because this one will look for changes by them
  wait_outside,  // until a file descriptor may be ready, or a child may have ended
  await_sight,   // until the thread can see what another one has announced by `notify`
  notify,        // tells the threads in `wait_outside` that something has changed
  await_start,   // until the process that this thread has started makes its first request
  await_reaction,  // until the process to which this thread has sent a signal handles it, or has ended
  await_end,       // until it can be seen that the process has ended; at once if it has not
  exec,            // the thread is about to begin another program, by exec(2)
  wait_on,         // sleep until another thread of the process wakes the waiters of an address
  wake,            // the waiters of an address
  interrupt,       // end the wait of another thread of the process
  set_timer,
  query_timer,
  delete_timer,
  find_process,
  describe_adapter,
  open_device,
  close_device,
  query_device,
  query_port,
  query_gid,
  query_pkey,
  query_clock,
  alloc_pd,
  dealloc_pd,
  alloc_td,
  dealloc_td,
  alloc_parent_domain,
  open_xrcd,
  close_xrcd,
  reg_mr,
  rereg_mr,
  dereg_mr,
  alloc_mw,
  dealloc_mw,
  bind_mw,
  create_channel,
  destroy_channel,
  get_cq_event,
  create_cq,
  resize_cq,
  destroy_cq,
  create_srq,
  modify_srq,
  query_srq,
  destroy_srq,
  create_qp,
  open_qp,
  modify_qp,
  query_qp,
  query_qp_data_in_order,
  destroy_qp,
  attach_mcast,
  detach_mcast,
  create_ah,
  destroy_ah,
  get_async_event,
  cm_open,  // a file of the connection manager
  cm_close,
  cm_command,
  cm_get_event,
  post_send,
  post_recv,
  post_srq_recv,
  poll_cq,
  start_poll,
  next_poll,
  end_poll,
  req_notify_cq,
  count
};

// Appends values to a message.
class Writer {
 public:
  explicit Writer(std::span<std::byte> room) : at_(room.data()), left_(room.size()), size_(room.size()) {}

  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* from, std::size_t bytes) {
    if (bytes > left_) {
      full_ = true;
      return;
    }
    if (bytes > 0) std::memcpy(at_, from, bytes);
    at_ += bytes;
    left_ -= bytes;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(size_ - left_); }
  // Something did not fit and was left out.
  bool full() const { return full_; }

 private:
  std::byte* at_;
  std::size_t left_;
  std::size_t size_;
  bool full_ = false;
};

// Takes values from a message. What is beyond its end reads as zeros.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> message) : at_(message.data()), left_(message.size()) {}

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (sizeof value > left_) return value;
    std::memcpy(static_cast<void*>(&value), at_, sizeof value);
    skip(sizeof value);
    return value;
  }
  template <class T>
  void get_into(T& value) {
    value = get<T>();
  }
  // The next bytes, where they are; fewer if the message ends.
  std::span<const std::byte> bytes(std::size_t count) {
    const std::span<const std::byte> found(at_, count < left_ ? count : left_);
    skip(found.size());
    return found;
  }

 private:
  void skip(std::size_t bytes) {
    at_ += bytes;
    left_ -= bytes;
  }
  const std::byte* at_;
  std::size_t left_;
};

// What identifies the adapter of a node beside what ibv_query_device tells.
struct AdapterFacts {
  std::uint32_t device_id;
  char driver[16];  // in the kernel
};

// A deadline, in virtual time.
inline constexpr std::int64_t kNever = INT64_MAX;

// What a timer of a process does when it runs out.
struct TimerSettings {
  std::int32_t id;
  std::int32_t thread;       // that gets the signal; 0: any of the process
  Signal signal;             // number 0: none
  std::uint64_t wake;        // the address whose waiting threads continue; 0: none
  std::int32_t fd;           // an eventfd of the process to which 1 is added; -1: none
  std::int64_t at_ps;        // kNever: it does not run
  std::int64_t interval_ps;  // until it runs out again; 0: it does not
};
// The state of a timer.
struct TimerState {
  std::int64_t left_ps;  // 0: it does not run
  std::int64_t interval_ps;
};
// The timer of alarm(2) and setitimer(2).
inline constexpr std::int32_t kRealTimer = -1;

// A work request in a message, followed by its SGEs or, if they are inline, by their bytes.
struct SendMessage {
  ibv_send_wr wr;    // without pointers
  std::uint32_t ah;  // of a datagram
  std::uint32_t mw;  // of a binding
  std::uint32_t mr;
  std::uint32_t inline_bytes;
};
struct RecvMessage {
  std::uint64_t wr_id;
  std::int32_t num_sge;
};

// A request with more SGEs is refused by any device: the rest of them need not travel.
inline constexpr int kMostSges = 256;

// A completion of an extended CQ.
struct ExtendedCompletion {
  ibv_wc wc;
  std::uint64_t timestamp;
};

}  // namespace verbscope::simulate
