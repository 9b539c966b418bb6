// Node: operations on the data path that differ between a host, a simulated node and the null device. Benchmark threads
// are templates over it, so that on a host each member costs nothing or a single instruction. nic_sim/host/sim_node.hpp
// has the simulated counterpart.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "common/clock.hpp"
#include "common/units.hpp"

namespace verbscope {

template <class N>
concept Node = requires(N node, Nanos cost, Picos when, const void* memory, std::size_t bytes, std::uint64_t& word,
                        std::uint64_t amount, ibv_comp_channel* channel) {
  { node.now() } -> std::same_as<Picos>;
  {node.idle()};            // idle: a spin hint, or simulated time passes
  {node.idle_until(when)};  // idle until `when` at the latest
  {node.compute(cost)};     // simulated computing time; nothing on a host
  // Declares memory that this thread polls and that peers write to by WRITE or atomics, or other threads by fetch_add.
  // Call once, before the first poll_memory().
  {node.watch(memory, bytes)};
  // Call before each pass of loads from watched memory: the loads then see everything that has arrived. End a pass that
  // finds nothing with idle(). Argument: the number of lines in the pass.
  {node.poll_memory()};
  {node.poll_memory(bytes)};
  // Adds to an aligned word that threads of this node share. Returns the old value.
  { node.fetch_add(word, amount) } -> std::same_as<std::uint64_t>;
  // For memory that is probably not cached: prefetch starts to fetch the line and returns; load is called just before
  // the thread reads it, and waits for it. Lines known to be cached need neither.
  {node.prefetch(memory)};
  {node.load(memory)};
  // Sleeps until a CQ of `channel` has a completion event, and acknowledges the event. Returns the CQ; null after
  // `timeout` (errno ETIMEDOUT) or on failure (errno). Before the call, arm the CQ with ibv_req_notify_cq, then poll
  // once more.
  { node.await_event(channel, cost) } -> std::same_as<ibv_cq*>;
};

// Implements await_event for a channel of libibverbs.
ibv_cq* await_host_event(ibv_comp_channel* channel, Nanos timeout);

// A thread on this machine, also used with the null device.
struct HostNode {
  Picos now() const { return TscClock::now(); }
  void idle() const { cpu_relax(); }
  void idle_until(Picos) const { cpu_relax(); }
  void compute(Nanos) const {}
  void watch(const void*, std::size_t) const {}
  void poll_memory(std::size_t /*lines*/ = 1) const { std::atomic_thread_fence(std::memory_order_acquire); }
  std::uint64_t fetch_add(std::uint64_t& word, std::uint64_t amount) const {
    return std::atomic_ref(word).fetch_add(amount, std::memory_order_acq_rel);
  }
  // Always inlined, because GCC 12 drops calls of a function that changes nothing and returns nothing.
  [[gnu::always_inline]] void prefetch(const void* line) const { __builtin_prefetch(line); }
  void load(const void*) const {}  // the read itself waits
  ibv_cq* await_event(ibv_comp_channel* channel, Nanos timeout) const { return await_host_event(channel, timeout); }
};

static_assert(Node<HostNode>);

}  // namespace verbscope
