#include "tests/conformance/rig.hpp"

#include <algorithm>

#include "verbs/endpoint.hpp"

namespace verbscope::conformance {
namespace {

// Posts one RECV of `sges` by `call`, which has the arguments of ibv_post_recv behind the queue.
template <class Call>
Posted post_one(Call call, const std::vector<ibv_sge>& sges, std::uint64_t id) {
  ibv_recv_wr wr{};
  wr.wr_id = id;
  wr.sg_list = const_cast<ibv_sge*>(sges.data());
  wr.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* bad = nullptr;
  const int error = call(&wr, &bad);
  return {error, bad == nullptr ? -1 : 0};
}

}  // namespace

Pair Rig::connect(ibv_qp_type type, const LinkOptions& options, const QpAsk& ask_a, const QpAsk& ask_b) {
  const Pair pair{a.make_qp(type, ask_a), b.make_qp(type, ask_b)};
  connect(pair, options);
  return pair;
}

void Rig::connect(const Pair& pair, const LinkOptions& options) {
  EXPECT_EQ(bring_up(a, pair.a, b, pair.b->qp_num, options), 0);
  EXPECT_EQ(bring_up(b, pair.b, a, pair.a->qp_num, options), 0);
  if (pair.a->qp_type != IBV_QPT_UD) return;
  destinations_[pair.a] = {a.make_ah(b, options.global), pair.b->qp_num};
  destinations_[pair.b] = {b.make_ah(a, options.global), pair.a->qp_num};
}

Posted Rig::post(ibv_qp* qp, const std::vector<Request>& list) {
  std::vector<ibv_send_wr> chain(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Request& request = list[i];
    ibv_send_wr& wr = chain[i];
    wr = ibv_send_wr{};
    wr.wr_id = request.id;
    wr.next = i + 1 < chain.size() ? &chain[i + 1] : nullptr;
    wr.sg_list = const_cast<ibv_sge*>(request.sges.data());
    wr.num_sge = static_cast<int>(request.sges.size());
    wr.opcode = request.opcode;
    wr.send_flags = request.flags;
    wr.imm_data = request.immediate;
    if (qp->qp_type == IBV_QPT_XRC_SEND) wr.qp_type.xrc.remote_srqn = request.srqn;
    if (qp->qp_type == IBV_QPT_UD) {
      const Destination to = request.ah == nullptr ? destinations_[qp] : Destination{request.ah, request.qpn};
      wr.wr.ud.ah = to.ah;
      wr.wr.ud.remote_qpn = to.qpn;
      wr.wr.ud.remote_qkey = request.qkey;
    } else if (is_atomic(request.opcode)) {
      wr.wr.atomic.remote_addr = request.remote;
      wr.wr.atomic.rkey = request.rkey;
      wr.wr.atomic.compare_add = request.compare_add;
      wr.wr.atomic.swap = request.swap;
    } else {
      wr.wr.rdma.remote_addr = request.remote;
      wr.wr.rdma.rkey = request.rkey;
    }
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, chain.data(), &bad);
  return {error, bad == nullptr ? -1 : static_cast<int>(bad - chain.data())};
}

void Rig::send(ibv_qp* qp, const Request& request) {
  EXPECT_EQ(post(qp, {request}).error, 0) << "posting " << opcode_name(request.opcode);
}

Posted Rig::post_recv(ibv_qp* qp, const std::vector<ibv_sge>& sges, std::uint64_t id) {
  return post_one([qp](ibv_recv_wr* wr, ibv_recv_wr** bad) { return ibv_post_recv(qp, wr, bad); }, sges, id);
}

Posted Rig::post_srq_recv(ibv_srq* srq, const std::vector<ibv_sge>& sges, std::uint64_t id) {
  return post_one([srq](ibv_recv_wr* wr, ibv_recv_wr** bad) { return ibv_post_srq_recv(srq, wr, bad); }, sges, id);
}

void Rig::recv(ibv_qp* qp, const std::vector<ibv_sge>& sges, std::uint64_t id) {
  EXPECT_EQ(post_recv(qp, sges, id).error, 0) << "posting a RECV";
}

void Rig::srq_recv(ibv_srq* srq, const std::vector<ibv_sge>& sges, std::uint64_t id) {
  EXPECT_EQ(post_srq_recv(srq, sges, id).error, 0) << "posting a RECV to the SRQ";
}

std::vector<ibv_wc> Rig::await(ibv_cq* cq, std::size_t count, const std::string& what) {
  std::vector<ibv_wc> all;
  const Picos end = fabric().now() + fabric().patience();
  fabric().wake_at(end);
  while (all.size() < count) {
    ibv_wc wc{};
    const int taken = ibv_poll_cq(cq, 1, &wc);
    if (taken == 1) {
      all.push_back(wc);
      continue;
    }
    if (taken < 0 || fabric().now() >= end) {
      ADD_FAILURE() << "waited for " << count << " completions (" << what << "), got " << all.size()
                    << (taken < 0 ? "; ibv_poll_cq failed" : "");
      break;
    }
    fabric().idle();
  }
  return all;
}

ibv_wc Rig::await_one(ibv_cq* cq, const std::string& what) {
  const std::vector<ibv_wc> all = await(cq, 1, what);
  if (!all.empty()) return all.front();
  ibv_wc none{};
  none.status = IBV_WC_GENERAL_ERR;
  return none;
}

ibv_wc Rig::await_status(ibv_cq* cq, ibv_wc_status status, const std::string& what) {
  const ibv_wc wc = await_one(cq, what);
  EXPECT_EQ(wc.status, status) << what << ": " << ibv_wc_status_str(wc.status) << " instead of "
                               << ibv_wc_status_str(status);
  return wc;
}

void Rig::await_until(const std::function<bool()>& condition, const std::string& what) {
  const Picos end = fabric().now() + fabric().patience();
  while (true) {
    fabric().poll_memory();
    if (condition()) return;
    if (fabric().now() >= end) break;
    fabric().pass(std::chrono::microseconds(20));
  }
  ADD_FAILURE() << "waited for " << what;
}

std::vector<ibv_wc> Rig::poll(ibv_cq* cq) {
  std::vector<ibv_wc> all;
  ibv_wc wc{};
  int taken = 0;
  while ((taken = ibv_poll_cq(cq, 1, &wc)) == 1) all.push_back(wc);
  EXPECT_EQ(taken, 0);
  return all;
}

void Rig::marker(const Pair& pair) {
  constexpr std::uint64_t kId = 0xabcdef;
  recv(pair.b, {b.sge(Side::kMemory - 64, 64)}, kId);
  send(pair.a, {.sges = {a.sge(Side::kMemory - 64, 8)}, .id = kId});
  EXPECT_EQ(await_success(b.recv_cq(), "the marker at its receiver").wr_id, kId);
  while (!HasFailure() && await_success(a.send_cq(), "the marker at its sender").wr_id != kId) {
  }
}

std::string transport_name(ibv_qp_type type) {
  return type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : "UD";
}

std::vector<std::uint64_t> ids(const std::vector<ibv_wc>& completions) {
  std::vector<std::uint64_t> all;
  for (const ibv_wc& wc : completions) all.push_back(wc.wr_id);
  return all;
}

std::vector<ibv_wc_status> statuses(const std::vector<ibv_wc>& completions) {
  std::vector<ibv_wc_status> all;
  for (const ibv_wc& wc : completions) all.push_back(wc.status);
  return all;
}

std::uint32_t mtu_of(const Side& side) {
  return static_cast<std::uint32_t>(mtu_bytes(side.device().port_attributes().active_mtu));
}

}  // namespace verbscope::conformance
