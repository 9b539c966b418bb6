#include "systems/kv_atomic/ends.hpp"

#include "common/error.hpp"
#include "microbench/loop/payload.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kWordBytes = static_cast<std::uint32_t>(kKvWord);

ibv_send_wr request(ibv_wr_opcode opcode, std::uint64_t wr_id, ibv_sge& segment, std::uint32_t rkey) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = opcode;
  wr.sg_list = &segment;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE) {
    wr.wr.rdma.rkey = rkey;
  } else {
    wr.wr.atomic.rkey = rkey;
  }
  return wr;
}

}  // namespace

void prepare_kv(KvOperation& op, std::uint32_t index, const KvKeys& keys, const Operation& operation, bool emulate) {
  const std::uint64_t id = send_id(op.lane, index);
  op.value_segment = {reinterpret_cast<std::uint64_t>(op.value), operation.payload, keys.lkey};
  op.word_segment = {reinterpret_cast<std::uint64_t>(op.word), kWordBytes, keys.lkey};
  op.read = request(IBV_WR_RDMA_READ, id, op.value_segment, keys.rkey);
  op.look = request(IBV_WR_RDMA_READ, id, op.word_segment, keys.rkey);
  op.lock = request(IBV_WR_ATOMIC_FETCH_AND_ADD, id, op.word_segment, keys.rkey);
  op.lock.wr.atomic.compare_add = kTakeTicket;
  op.unlock = request(IBV_WR_ATOMIC_FETCH_AND_ADD, id, op.word_segment, keys.rkey);
  op.unlock.wr.atomic.compare_add = kServeNext;
  op.skip = request(IBV_WR_ATOMIC_CMP_AND_SWP, id, op.word_segment, keys.rkey);
  if (emulate) return;
  op.write = request(IBV_WR_RDMA_WRITE, id, op.value_segment, keys.rkey);
  op.write.send_flags = operation.inlined ? unsigned{IBV_SEND_INLINE} : 0u;  // the unlocking behind it is signaled
  op.write.next = &op.unlock;
}

void fill_kv_region(const KvOptions& options, const Operation& op, std::span<std::byte> region) {
  const KvLayout layout = options.layout(op.payload);
  const KvValues values(op.seed, op.payload);
  for (std::uint64_t key = 0; key < layout.keys(); ++key) values.fill(region.data() + layout.value_of(key), key, 0);
}

KvClient::KvClient(const ThreadSetup& setup, const KvOptions& options)
    : value_stride_(payload_stride(setup.operation.payload)),
      buffer_(Bytes(setup.lanes.size() * options.outstanding.value() * (value_stride_ + kKvWord)), setup.huge_pages),
      mr_(setup.pd, buffer_.data(), buffer_.size()),
      operations_(setup.lanes.size() * options.outstanding.value()),
      state_(options.layout(setup.operation.payload), KvValues(setup.operation.seed, setup.operation.payload),
             setup.operation.seed * 1'000'003 + (std::uint64_t{setup.node} << 32) + setup.thread) {
  const std::uint32_t outstanding = options.outstanding.value();
  for (const Lane& lane : setup.lanes) lanes_.push_back({lane.qp, lane.builder, lane.peers.front().region.address});
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    KvOperation& op = operations_[i];
    op.lane = static_cast<std::uint32_t>(i / outstanding);
    op.value = buffer_.data() + i * value_stride_;
    op.word = reinterpret_cast<std::uint64_t*>(buffer_.data() + operations_.size() * value_stride_) + i;
    const std::uint32_t rkey = setup.lanes[op.lane].peers.front().region.rkey;
    prepare_kv(op, static_cast<std::uint32_t>(i), {mr_.lkey(), rkey}, setup.operation, options.emulate);
  }
  state_.cq = setup.cq;
  state_.channel = setup.channel;
  state_.lanes = lanes_;
  state_.operations = operations_;
  state_.put_percent = options.put_percent;
  state_.emulate = options.emulate;
  state_.lease = options.lease.value();
  state_.goal = setup.goal;
}

KvServer::KvServer(const ThreadSetup& setup, const KvOptions& options)
    : region_(setup.region.bytes),
      layout_(options.layout(setup.operation.payload)),
      values_(setup.operation.seed, setup.operation.payload),
      emulate_(options.emulate),
      holds_records_(setup.thread == 0) {}

std::uint64_t KvServer::lock_slots(std::uint32_t bits) const {
  return distinct_lock_slots(layout_, reinterpret_cast<std::uint64_t>(region_.data()), bits);
}

void KvServer::look_at_records() {
  for (std::uint64_t key = 0; key < layout_.keys(); ++key) {
    const auto lock = load_word<std::uint64_t>(region_.data() + layout_.lock_of(key));
    puts_ += now_served(lock);
    if (next_ticket(lock) != now_served(lock)) {
      ++locked_;
      continue;
    }
    const KvReading reading = values_.look_at(region_.data() + layout_.value_of(key), key);
    const std::uint64_t version = emulate_ ? 0 : now_served(lock);
    if (reading.finding != KvFinding::consistent || reading.version != version) ++inconsistent_;
  }
}

}  // namespace verbscope
