// A simulated cluster, and per node what the tests need: a device, memory that the NIC may access, completion queues
// and QPs. Calls outside of threads take no virtual time; pass() advances it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "nic_sim/cluster.hpp"

namespace verbscope::test {

// cib without randomness: all reads take the same time.
Profile steady_profile(const std::string& name = "cib");

// All fields, to compare runs.
std::vector<std::uint64_t> values(const PcieCounts& counts);
std::vector<std::uint64_t> values(const NicCounts& counts);

// Offset in a node's memory at which messages arrive, after the data that it sends.
constexpr std::uint64_t kIn = 512 * 1024;
// Long enough for all requests of a test; a message takes about 2 us.
constexpr Picos kLong = std::chrono::microseconds(300);

// All access rights of memory and connections.
constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct QpOptions {
  ibv_qp_cap cap{.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 256};
  bool signal_all = false;
  bool builder = false;  // create the QP with the ibv_wr_* interface, for all operations of the transport
  std::uint8_t port = 1;
  std::uint32_t qkey = 0x1111;
  std::uint8_t timeout = 14;  // 4.096 us * 2^14 = 67 ms
  std::uint8_t retries = 7;
  std::uint8_t rnr_retries = 7;    // no limit
  std::uint8_t min_rnr_timer = 1;  // 10 us
  ibv_mtu mtu = IBV_MTU_4096;
  bool global = false;  // address with a GRH
  std::uint32_t psn = 0x1234;
  std::uint8_t reads = 16;  // READs and atomics that a connection may have outstanding
};

// Request flags, as numbers.
constexpr unsigned kSignaled = IBV_SEND_SIGNALED;
constexpr unsigned kInline = IBV_SEND_INLINE;

// The description of a work request. `offset`: in the node's memory.
struct Send {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint64_t id = 0;
  unsigned flags = kSignaled;
  bool with_immediate = false;
  std::uint32_t immediate = 0;
};

class TestNode {
 public:
  static constexpr std::size_t kMemory = 1 << 20;

  TestNode(SimCluster& cluster, int number, int cq_entries = 4096);
  ~TestNode();
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;

  Provider& provider() { return *provider_; }
  ibv_context* context() { return context_; }
  ibv_pd* pd() { return pd_; }
  ibv_mr* mr() { return mr_; }
  ibv_cq* send_cq() { return send_cq_; }
  ibv_cq* recv_cq() { return recv_cq_; }
  std::uint8_t* memory(std::uint64_t offset = 0) { return memory_.get() + offset; }
  ibv_sge sge(std::uint64_t offset, std::uint32_t length);

  ibv_qp* make_qp(ibv_qp_type type, const QpOptions& options = {});
  void destroy(ibv_qp* qp);
  ibv_ah* make_ah(int to, const QpOptions& options = {});

  // Posts one request. Returns 0 or the error.
  int post(ibv_qp* qp, const Send& send, ibv_ah* ah = nullptr, std::uint32_t remote_qp = 0,
           std::uint32_t remote_qkey = 0x1111);
  // Posts `count` such requests in one list, with ids from send.id upwards. Returns 0 or the error.
  int post_list(ibv_qp* qp, Send send, int count, ibv_ah* ah = nullptr, std::uint32_t remote_qp = 0);
  int post_recv(ibv_qp* qp, std::uint64_t offset, std::uint32_t length, std::uint64_t id = 0);
  // Posts one list of `count` RECVs with adjacent buffers of `length` bytes and ids from 0 upwards.
  int post_recvs(ibv_qp* qp, std::uint64_t offset, std::uint32_t length, int count);

  std::vector<ibv_wc> poll_sends() { return poll(send_cq_); }
  std::vector<ibv_wc> poll_recvs() { return poll(recv_cq_); }

 private:
  std::vector<ibv_wc> poll(ibv_cq* cq);

  Provider* provider_;
  // Page-aligned, so that line crossings do not depend on the allocator.
  std::unique_ptr<std::uint8_t[], void (*)(void*)> memory_;
  ibv_context* context_;
  ibv_pd* pd_;
  ibv_mr* mr_;
  ibv_cq* send_cq_;
  ibv_cq* recv_cq_;
  std::vector<ibv_qp*> qps_;
  std::vector<ibv_ah*> ahs_;
};

// Moves a QP from RESET, or from ERR through RESET, to RTS with `peer` on node `to` (ignored on UD). Returns 0 or the
// first error.
int bring_up(TestNode& node, ibv_qp* qp, const QpOptions& options, int to, std::uint32_t peer);

struct TwoNodes {
  explicit TwoNodes(const Profile& profile = steady_profile(), std::uint64_t seed = 1, int cq_entries = 4096);

  // Advances virtual time by `time`.
  void pass(Picos time);
  // Advances time until `cq` of `node` has returned `count` completions, at most by `limit`. Returns the completions.
  // `when`: the time, to a nanosecond, at which the last one became visible.
  std::vector<ibv_wc> await(ibv_cq* cq, std::size_t count, Picos limit = std::chrono::milliseconds(10),
                            Picos* when = nullptr);

  Profile profile;
  SimCluster cluster;
  TestNode a;
  TestNode b;

 private:
  int cores_used_ = 0;
};

// One QP on each node: connected, or on UD with an address handle.
struct Pair : TwoNodes {
  explicit Pair(ibv_qp_type type, const QpOptions& options = {}, const Profile& profile = steady_profile(),
                std::uint64_t seed = 1, int cq_entries = 4096);

  // Sends from a's QP to b's.
  int send(const Send& what) { return a.post(qa, what, ah, qb->qp_num); }
  int send_list(const Send& what, int count) { return a.post_list(qa, what, count, ah, qb->qp_num); }

  ibv_qp_ex* builder() { return a.provider().qp_to_qp_ex(qa); }

  QpOptions options;
  ibv_qp* qa;
  ibv_qp* qb;
  ibv_ah* ah = nullptr;
};

// Fills memory with a pattern that depends on the offset and on `seed`.
void fill(std::uint8_t* memory, std::size_t bytes, unsigned seed);
// True if memory has the pattern.
testing::AssertionResult has_pattern(const std::uint8_t* memory, std::size_t bytes, unsigned seed);

// Room for the GRH in front of the payload on UD; 0 on connected transports.
constexpr std::uint32_t grh_room(ibv_qp_type type) {
  return type == IBV_QPT_UD ? 40 : 0;
}
std::string name_of(ibv_qp_type type);

std::vector<ibv_wc_status> statuses(const std::vector<ibv_wc>& completions);
std::vector<std::uint64_t> ids(const std::vector<ibv_wc>& completions);

}  // namespace verbscope::test
