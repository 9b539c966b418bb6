#include "tests/nic_sim/two_nodes.hpp"

#include "verbs/qp_rules.hpp"

namespace verbscope::test {

Profile steady_profile(const std::string& name) {
  Profile profile = load_profile(name);
  profile.host.cores = 100'000;  // each call of pass() uses a thread
  profile.host.memory_read_jitter = Picos(0);
  profile.host.slow_read_probability = 0;
  return profile;
}

std::vector<std::uint64_t> values(const PcieCounts& counts) {
  std::vector<std::uint64_t> all;
  PcieCounts::each(counts, [&](const char*, std::uint64_t value) { all.push_back(value); });
  return all;
}
std::vector<std::uint64_t> values(const NicCounts& counts) {
  std::vector<std::uint64_t> all;
  NicCounts::each(counts, [&](const char*, std::uint64_t value) { all.push_back(value); });
  return all;
}

TestNode::TestNode(SimCluster& cluster, int number, int cq_entries)
    : provider_(&cluster.provider(number)),
      memory_(static_cast<std::uint8_t*>(std::aligned_alloc(4096, kMemory)), &std::free) {
  std::memset(memory_.get(), 0, kMemory);
  context_ = provider_->open("sim0");
  pd_ = provider_->alloc_pd(context_);
  mr_ = provider_->reg_mr(pd_, memory_.get(), kMemory, kAllAccess);
  send_cq_ = provider_->create_cq(context_, cq_entries, nullptr, 0);
  recv_cq_ = provider_->create_cq(context_, cq_entries, nullptr, 0);
}

TestNode::~TestNode() {
  for (ibv_qp* qp : qps_) EXPECT_EQ(provider_->destroy_qp(qp), 0);
  for (ibv_ah* ah : ahs_) EXPECT_EQ(provider_->destroy_ah(ah), 0);
  EXPECT_EQ(provider_->destroy_cq(send_cq_), 0);
  EXPECT_EQ(provider_->destroy_cq(recv_cq_), 0);
  EXPECT_EQ(provider_->dereg_mr(mr_), 0);
  EXPECT_EQ(provider_->dealloc_pd(pd_), 0);
  EXPECT_EQ(provider_->close(context_), 0);
}

ibv_sge TestNode::sge(std::uint64_t offset, std::uint32_t length) {
  return {reinterpret_cast<std::uint64_t>(memory(offset)), length, mr_->lkey};
}

ibv_qp* TestNode::make_qp(ibv_qp_type type, const QpOptions& options) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = send_cq_;
  init.recv_cq = recv_cq_;
  init.cap = options.cap;
  init.qp_type = type;
  init.sq_sig_all = options.signal_all ? 1 : 0;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = pd_;
  if (options.builder) {
    init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = send_operations(type);
  }
  qps_.push_back(provider_->create_qp_ex(context_, &init));
  EXPECT_NE(qps_.back(), nullptr);
  return qps_.back();
}

void TestNode::destroy(ibv_qp* qp) {
  EXPECT_EQ(provider_->destroy_qp(qp), 0);
  std::erase(qps_, qp);
}

namespace {

ibv_ah_attr address_of(Provider& of, ibv_context* context, int node, const QpOptions& options) {
  ibv_ah_attr attr{};
  attr.port_num = options.port;
  ibv_gid_entry entry{};
  EXPECT_EQ(of.query_gid(context, options.port, 0, &entry), 0);
  attr.dlid = static_cast<std::uint16_t>(node + 1);
  if (options.global) {
    attr.is_global = 1;
    attr.grh.dgid = entry.gid;
    // All nodes have the same subnet prefix. The interface id contains the node's number (nic_sim/device/provider.cpp).
    const std::size_t place = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 15 : 14;
    attr.grh.dgid.raw[place] = static_cast<std::uint8_t>(node + 1);
  }
  return attr;
}

}  // namespace

ibv_ah* TestNode::make_ah(int to, const QpOptions& options) {
  ibv_ah_attr attr = address_of(*provider_, context_, to, options);
  ahs_.push_back(provider_->create_ah(pd_, &attr));
  EXPECT_NE(ahs_.back(), nullptr);
  return ahs_.back();
}

int TestNode::post(ibv_qp* qp, const Send& send, ibv_ah* ah, std::uint32_t remote_qp, std::uint32_t remote_qkey) {
  ibv_sge piece = sge(send.offset, send.length);
  ibv_send_wr wr{};
  wr.wr_id = send.id;
  wr.sg_list = &piece;
  wr.num_sge = send.length > 0 ? 1 : 0;
  wr.opcode = send.with_immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  wr.send_flags = send.flags;
  wr.imm_data = send.immediate;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = remote_qp;
  wr.wr.ud.remote_qkey = remote_qkey;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &wr, &bad);
  EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
  return error;
}

int TestNode::post_list(ibv_qp* qp, Send send, int count, ibv_ah* ah, std::uint32_t remote_qp) {
  std::vector<ibv_send_wr> list(static_cast<std::size_t>(count));
  ibv_sge piece = sge(send.offset, send.length);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = {};
    list[i].wr_id = send.id + i;
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
    list[i].sg_list = &piece;
    list[i].num_sge = send.length > 0 ? 1 : 0;
    list[i].opcode = IBV_WR_SEND;
    list[i].send_flags = send.flags;
    list[i].wr.ud.ah = ah;
    list[i].wr.ud.remote_qpn = remote_qp;
    list[i].wr.ud.remote_qkey = 0x1111;
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, list.data(), &bad);
}

int TestNode::post_recv(ibv_qp* qp, std::uint64_t offset, std::uint32_t length, std::uint64_t id) {
  ibv_sge piece = sge(offset, length);
  ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = &piece, .num_sge = length > 0 ? 1 : 0};
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp, &wr, &bad);
  EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
  return error;
}

int TestNode::post_recvs(ibv_qp* qp, std::uint64_t offset, std::uint32_t length, int count) {
  std::vector<ibv_recv_wr> list(static_cast<std::size_t>(count));
  std::vector<ibv_sge> pieces(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    pieces[i] = sge(offset + i * length, length);
    list[i] = {.wr_id = i,
               .next = i + 1 < list.size() ? &list[i + 1] : nullptr,
               .sg_list = &pieces[i],
               .num_sge = length > 0 ? 1 : 0};
  }
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, list.data(), &bad);
}

std::vector<ibv_wc> TestNode::poll(ibv_cq* cq) {
  std::vector<ibv_wc> all;
  ibv_wc wc{};
  int taken = 0;
  while ((taken = ibv_poll_cq(cq, 1, &wc)) == 1) all.push_back(wc);
  EXPECT_EQ(taken, 0);
  return all;
}

int bring_up(TestNode& node, ibv_qp* qp, const QpOptions& options, int to, std::uint32_t peer) {
  const bool reliable = qp->qp_type == IBV_QPT_RC;
  const bool datagram = qp->qp_type == IBV_QPT_UD;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = options.port;
  attr.qkey = options.qkey;
  attr.qp_access_flags = kAllAccess;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  mask |= datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  int error = node.provider().modify_qp(qp, &attr, mask);
  if (error != 0) return error;
  attr.qp_state = IBV_QPS_RTR;
  mask = IBV_QP_STATE;
  if (!datagram) {
    attr.ah_attr = address_of(node.provider(), node.context(), to, options);
    attr.path_mtu = options.mtu;
    attr.dest_qp_num = peer;
    attr.rq_psn = options.psn;
    attr.max_dest_rd_atomic = options.reads;
    attr.min_rnr_timer = options.min_rnr_timer;
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (reliable) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  error = node.provider().modify_qp(qp, &attr, mask);
  if (error != 0) return error;
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = options.psn;
  attr.timeout = options.timeout;
  attr.retry_cnt = options.retries;
  attr.rnr_retry = options.rnr_retries;
  attr.max_rd_atomic = options.reads;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return node.provider().modify_qp(qp, &attr, mask);
}

TwoNodes::TwoNodes(const Profile& p, std::uint64_t seed, int cq_entries)
    : profile(p), cluster(profile, 2, seed), a(cluster, 0, cq_entries), b(cluster, 1, cq_entries) {}

void TwoNodes::pass(Picos time) {
  Provider& provider = a.provider();
  ibv_cq* idle = provider.create_cq(a.context(), 1, nullptr, 0);
  cluster.add_thread(0, cores_used_++, [&](SimNode& node) {
    node.compute(std::chrono::duration_cast<Nanos>(time));
    ibv_wc wc{};
    ibv_poll_cq(idle, 1, &wc);  // a poll waits for the engine to reach the thread's time
  });
  cluster.run();
  provider.destroy_cq(idle);
}

std::vector<ibv_wc> TwoNodes::await(ibv_cq* cq, std::size_t count, Picos limit, Picos* when) {
  std::vector<ibv_wc> all;
  cluster.add_thread(0, cores_used_++, [&](SimNode& node) {
    const Picos end = node.now() + limit;
    while (all.size() < count && node.now() < end) {
      ibv_wc wc{};
      if (ibv_poll_cq(cq, 1, &wc) == 1) {
        all.push_back(wc);
      } else {
        node.compute(Nanos(1));
      }
    }
    if (when != nullptr) *when = node.now();
  });
  cluster.run();
  return all;
}

Pair::Pair(ibv_qp_type type, const QpOptions& o, const Profile& p, std::uint64_t seed, int cq_entries)
    : TwoNodes(p, seed, cq_entries), options(o), qa(a.make_qp(type, options)), qb(b.make_qp(type, options)) {
  EXPECT_EQ(bring_up(a, qa, options, 1, qb->qp_num), 0);
  EXPECT_EQ(bring_up(b, qb, options, 0, qa->qp_num), 0);
  if (type == IBV_QPT_UD) ah = a.make_ah(1, options);
}

void fill(std::uint8_t* memory, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::uint8_t>(i * 31 + (i >> 8) * 7 + seed * 101 + 1);
}

testing::AssertionResult has_pattern(const std::uint8_t* memory, std::size_t bytes, unsigned seed) {
  std::vector<std::uint8_t> expected(bytes);
  fill(expected.data(), bytes, seed);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != expected[i]) return testing::AssertionFailure() << "byte " << i << " of " << bytes << " differs";
  }
  return testing::AssertionSuccess();
}

std::string name_of(ibv_qp_type type) {
  return type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : "UD";
}

std::vector<ibv_wc_status> statuses(const std::vector<ibv_wc>& completions) {
  std::vector<ibv_wc_status> all;
  for (const ibv_wc& wc : completions) all.push_back(wc.status);
  return all;
}

std::vector<std::uint64_t> ids(const std::vector<ibv_wc>& completions) {
  std::vector<std::uint64_t> all;
  for (const ibv_wc& wc : completions) all.push_back(wc.wr_id);
  return all;
}

}  // namespace verbscope::test
