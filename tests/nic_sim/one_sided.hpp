// WRITE, READ and atomics from a's QP to b's memory.
#pragma once

#include <cstring>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {

inline constexpr std::uint64_t kSourceAt = 0;
inline constexpr std::uint64_t kTargetAt = 256 * 1024;

// A pair whose QPs allow all accesses, and one-sided requests from a's QP to b's memory.
struct OneSided : Pair {
  explicit OneSided(ibv_qp_type type = IBV_QPT_RC, const QpOptions& given = {}, const Profile& p = steady_profile(),
                    std::uint64_t seed = 1)
      : Pair(type, given, p, seed) {}

  ibv_send_wr request(ibv_wr_opcode opcode, std::uint32_t length, std::uint64_t id = 0) {
    sge = a.sge(kSourceAt, length);
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = length == 0 ? 0 : 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(b.memory(kTargetAt));
    wr.wr.rdma.rkey = b.mr()->rkey;
    return wr;
  }
  ibv_send_wr atomic(ibv_wr_opcode opcode, std::uint64_t add_or_compare, std::uint64_t swap = 0) {
    ibv_send_wr wr = request(opcode, 8);
    wr.wr.atomic.remote_addr = reinterpret_cast<std::uint64_t>(b.memory(kTargetAt));
    wr.wr.atomic.rkey = b.mr()->rkey;
    wr.wr.atomic.compare_add = add_or_compare;
    wr.wr.atomic.swap = swap;
    return wr;
  }
  int post(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qa, &wr, &bad);
  }
  // Posts both in one list.
  int post(ibv_send_wr first, ibv_send_wr second) {
    first.next = &second;
    return post(first);
  }
  std::uint64_t word(TestNode& node, std::uint64_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, node.memory(offset), sizeof value);
    return value;
  }
  void set_word(TestNode& node, std::uint64_t offset, std::uint64_t value) {
    std::memcpy(node.memory(offset), &value, sizeof value);
  }

  ibv_sge sge{};
};

}  // namespace verbscope::test
