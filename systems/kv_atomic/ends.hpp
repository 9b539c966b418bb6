// The two ends of kv_atomic as workloads: clients that GET and PUT, and the server whose memory it is.
#pragma once

#include <optional>
#include <vector>

#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/workload.hpp"
#include "systems/kv_atomic/loop.hpp"

namespace verbscope {

struct KvOptions {
  std::uint64_t keys = 4096;
  std::uint32_t put_percent = 5;
  LockPlacement locks = LockPlacement::hashed;
  std::optional<std::uint32_t> outstanding{};  // operations of a QP
  bool emulate = false;                        // a PUT is its two atomics, without the WRITE
  std::optional<Picos> lease{};                // a ticket that makes no progress for this long is skipped
  bool huge_pages = false;

  KvLayout layout(std::uint32_t value_bytes) const { return {keys, value_bytes, locks}; }
};

// Writes version 0 of every value. The locks are free, because they are zero.
void fill_kv_region(const KvOptions& options, const Operation& op, std::span<std::byte> region);

// The keys of the client's buffer and of the server's region.
struct KvKeys {
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
};
// Builds the requests of operation `index`, whose `lane`, `value` and `word` are set, but for the addresses.
void prepare_kv(KvOperation& op, std::uint32_t index, const KvKeys& keys, const Operation& operation, bool emulate);

class KvClient final : public WorkloadOn<KvClient> {
 public:
  KvClient(const ThreadSetup& setup, const KvOptions& options);

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    kv_loop(node, state_, control, tally);
    window_ = tally.interval.end - tally.interval.begin;
  }

  bool active() const override { return true; }
  std::uint64_t checked() const override { return state_.counts.gets; }
  std::uint64_t wrong() const override { return state_.counts.wrong; }
  std::string memory() const override { return buffer_.describe(); }

  const KvState& state() const { return state_; }
  Picos window() const { return window_; }

 private:
  std::uint64_t value_stride_;  // bytes from a value to the next in the buffer, which has words behind the values
  Buffer buffer_;
  Mr mr_;
  std::vector<KvLane> lanes_;
  std::vector<KvOperation> operations_;
  KvState state_;
  Picos window_{0};
};

// After the run thread 0 checks every record: the lock must be free, and the value of the version that the lock counts.
class KvServer final : public WorkloadOn<KvServer> {
 public:
  KvServer(const ThreadSetup& setup, const KvOptions& options);

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    wait_for_quit(node, control);
    if (holds_records_) look_at_records();
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }

  bool holds_records() const { return holds_records_; }
  std::uint64_t locked() const { return locked_; }              // records whose lock is taken
  std::uint64_t inconsistent() const { return inconsistent_; }  // free ones whose value is not that of the last PUT
  std::uint64_t puts() const { return puts_; }                  // PUTs that the locks count
  // The lock slots that the locks reach, when the low `bits` bits of an address choose the slot.
  std::uint64_t lock_slots(std::uint32_t bits) const;

 private:
  void look_at_records();

  std::span<std::byte> region_;
  KvLayout layout_;
  KvValues values_;
  bool emulate_;
  bool holds_records_;  // thread 0 looks for all
  std::uint64_t locked_ = 0, inconsistent_ = 0, puts_ = 0;
};

}  // namespace verbscope
