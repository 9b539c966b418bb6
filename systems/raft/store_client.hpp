// A client of the replicated store: finds the leader, and asks again until each operation has an answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "systems/history/history.hpp"
#include "systems/raft/store_messages.hpp"
#include "systems/service/service_thread.hpp"

namespace verbscope {

struct StoreClientOptions {
  std::uint64_t client = 0;  // no other client has the number; it is part of the values
  std::uint32_t outstanding = 1;
  std::uint64_t keys = 0;
  std::uint32_t put_percent = 0;
  Picos patience{0};             // a replica that does not answer for this long is left
  Picos pause{0};                // before an operation is tried again
  Picos give_up{0};              // an operation that has no answer after this has an unknown outcome
  std::function<Nanos()> clock;  // of the history
};

struct StoreClientCounts {
  std::uint64_t puts = 0;  // answered
  std::uint64_t gets = 0;
  std::uint64_t unknown = 0;
  std::uint64_t retries = 0;
  std::uint64_t wrong = 0;  // GETs with a value that no PUT writes
  Histogram put_latency{}, get_latency{};
};

class StoreClient {
 public:
  using Record = std::function<void(const HistoryEvent&)>;

  // `record`: called for each PUT before it is sent, and for each operation that is over; may be null. The thread must
  // outlive the client.
  StoreClient(ServiceThread& thread, const StoreClientOptions& options, Record record);
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  // Opens a session of the store for each outstanding operation. Throws Error if that takes longer than give_up.
  void connect();
  // Makes operations until `end`.
  void run_until(Picos end);
  // Ends the operations that are outstanding, or gives them up, and closes the sessions.
  void drain();
  const StoreClientCounts& counts() const { return counts_; }
  void clear_counts() { counts_ = {}; }

 private:
  enum class Phase : std::uint8_t { ready, asking, waits };
  struct Slot {
    StoreClient* client = nullptr;
    MessageBuffer request, response;
    Phase phase = Phase::ready;
    StoreOp op = StoreOp::open;
    std::uint64_t session = 0;  // 0: none yet
    std::uint64_t number = 0;   // of the last PUT in the session
    std::uint64_t operation = 0;
    std::uint64_t key = 0;
    std::uint64_t value = 0;
    Picos since{0};     // the operation
    Nanos invoked{0};   // the same, in the history
    Picos asked{0};     // this attempt
    Picos again_at{0};  // while it waits
    std::uint32_t server = 0;
  };

  bool step();
  void begin(Slot& slot);
  void ask(Slot& slot);
  static void done(void* context, std::uint64_t, RpcStatus status);
  void finish(Slot& slot, RpcStatus status);
  void complete(Slot& slot, const StoreAnswer& answer);
  void next(Slot& slot);
  void again(Slot& slot, Picos pause);
  void give_up(Slot& slot);
  void leave(std::uint32_t server);
  HistoryEvent event_of(const Slot& slot) const;

  ServiceThread& thread_;
  const StoreClientOptions options_;
  const Record record_;
  std::vector<std::optional<std::uint16_t>> sessions_;  // by server
  std::uint32_t leader_ = 0;                            // where the leader is believed to be
  std::deque<Slot> slots_;
  std::uint64_t operations_ = 0;
  bool running_ = false;            // an operation that is over is followed by another
  std::vector<HistoryEvent> over_;  // operations that are over since the last pass
  StoreClientCounts counts_;
};

}  // namespace verbscope
