// A process of a program in the simulation: its memory, and its verbs objects by the numbers that it knows.
#pragma once

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "common/fd.hpp"
#include "common/units.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/nic/objects.hpp"
#include "simulate/server/timers.hpp"
#include "simulate/server/waits.hpp"

namespace verbscope::simulate {

// The memory of a process, by process_vm_readv(2) and process_vm_writev(2).
class ProcessMemory final : public sim::AddressSpace {
 public:
  explicit ProcessMemory(int process) : process_(process) {}
  void read(const void* from, std::byte* to, std::uint64_t bytes) const override;
  void write(void* to, const std::byte* from, std::uint64_t bytes) const override;
  // Throws Error if the kernel does not let this process access the memory of that one.
  void check_access() const;
  bool accessible(const void* place) const;

 private:
  int process_;
};

class ConnectionManager;

enum class Kind : std::uint8_t { context, pd, td, xrcd, mr, mw, channel, cq, srq, qp, ah };

class Process {
 public:
  // `number`: in the order in which processes begin, from 1 on. `wakeup`: HostProfile::event_wakeup. Throws Error if
  // the process has ended.
  Process(int id, int number, int node, sim::SimProvider& provider, Picos wakeup, ConnectionManager& connections);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int id() const { return id_; }
  int number() const { return number_; }
  int node() const { return node_; }
  sim::SimProvider& provider() { return provider_; }
  ConnectionManager& connections() { return connections_; }
  const ProcessMemory& memory() const { return memory_; }
  bool alive() const;
  // One of its threads is gone. True if so is the process, which may take a moment.
  bool ends() const;
  // A copy of the process's file descriptor; -1 and errno.
  int copy_fd(int fd) const;

  // The number of a new object.
  template <class Object>
  std::uint32_t add(Kind kind, Object* object) {
    if constexpr (std::is_same_v<Object, ibv_context>) {
      return add({kind, object, object});
    } else {
      return add({kind, object, object->context});
    }
  }
  // Null if the process has no such object of this kind.
  template <class Object>
  Object* find(Kind kind, std::uint32_t handle) const {
    return handle == 0 || handle > objects_.size() || objects_[handle - 1].kind != kind
               ? nullptr
               : static_cast<Object*>(objects_[handle - 1].object);
  }
  void remove(std::uint32_t handle);
  // Peers may write to its memory.
  bool has_regions() const {
    return std::ranges::any_of(objects_,
                               [](const Entry& entry) { return entry.kind == Kind::mr && entry.object != nullptr; });
  }
  // Gives none of the numbers that `parent` has given: this process is its copy by fork(2), and knows them.
  void skip_numbers_of(const Process& parent) { objects_.resize(parent.objects_.size()); }
  // Destroys the objects that the process has made with the context, and the context.
  void close(const ibv_context& context) { destroy_all(&context); }
  // The process has ended, or begins again by exec(2): destroys its objects and closes its files.
  void destroy_objects();

  // It has ended: what is left of it is cleaned up.
  void bury();
  bool buried() const { return buried_; }

  Timers timers;
  Waits waits;
  int threads = 0;           // that take part in the simulation
  // When the kernel closes what the ended process had open, if its end was noticed at a time that does not depend on
  // real time.
  std::optional<Picos> closes_at;

 private:
  struct Entry {
    Kind kind = Kind::context;
    void* object = nullptr;  // null: the number is free
    const ibv_context* context = nullptr;
  };
  std::uint32_t add(const Entry& entry);
  int destroy(const Entry& entry);
  // Destroys the objects of one context; null: of all.
  void destroy_all(const ibv_context* context);

  int id_;
  int number_;
  int node_;
  sim::SimProvider& provider_;
  ConnectionManager& connections_;
  ProcessMemory memory_;
  Fd pidfd_;
  std::vector<Entry> objects_;
  std::vector<std::uint32_t> free_;
  bool buried_ = false;
};

}  // namespace verbscope::simulate
