#include "microbench/visibility/ends.hpp"

#include "common/error.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/visibility/loop.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::array<const char*, kCheckedKinds> kKindNames = {"write", "write_read"};

// A region: the words, then one cache line each for the outgoing message, the incoming message, and the READ.
struct VisibilityLayout {
  std::byte* words;
  std::byte* outgoing;
  std::byte* incoming;
  std::byte* read;

  explicit VisibilityLayout(const ThreadSetup& setup)
      : words(setup.region.bytes.data()),
        outgoing(words + round_up(setup.operation.payload, kCacheLine.value)),
        incoming(outgoing + kCacheLine.value),
        read(incoming + kCacheLine.value) {}

  std::span<std::uint64_t> word_span(std::uint32_t payload) const {
    return {reinterpret_cast<std::uint64_t*>(words), payload / kWord};
  }
};

// The base of both sides: their queues and messages.
class VisibilityEnd {
 protected:
  explicit VisibilityEnd(const ThreadSetup& setup) : layout_(setup) {
    message_segment_ = {reinterpret_cast<std::uint64_t>(layout_.outgoing), kWord, setup.region.lkey};
    recv_segment_ = {reinterpret_cast<std::uint64_t>(layout_.incoming), kWord, setup.region.lkey};
  }

  std::array<SendQueue, 2> queues(const ThreadSetup& setup) const {
    const Lane& lane = setup.lanes.front();
    const std::uint32_t depth = setup.operation.tx_depth;
    return {SendQueue{.qp = lane.qp, .builder = lane.builder, .depth = depth},
            SendQueue{.qp = lane.companion, .builder = lane.companion_builder, .index = 1, .depth = depth}};
  }

  ibv_send_wr message() {
    ibv_send_wr wr{};
    wr.wr_id = send_id(kMessageQueue);
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &message_segment_;
    wr.num_sge = 1;
    return wr;
  }

  VersionRecv post_recvs(const ThreadSetup& setup) {
    VersionRecv recv{.qp = setup.lanes.front().companion, .place = layout_.incoming};
    recv.request.sg_list = &recv_segment_;
    recv.request.num_sge = 1;
    for (std::uint32_t i = 0; i < setup.operation.rx_depth; ++i) {
      check_errno("post a RECV", post_recv_list(recv.qp, &recv.request));
    }
    return recv;
  }

  VisibilityLayout layout_;
  ibv_sge message_segment_{};
  ibv_sge recv_segment_{};
};

class Writer final : public WorkloadOn<Writer>, private VisibilityEnd {
 public:
  explicit Writer(const ThreadSetup& setup) : VisibilityEnd(setup) {
    const std::uint32_t payload = setup.operation.payload;
    const RemoteRegion& region = setup.lanes.front().peers.front().region;
    write_segment_ = {reinterpret_cast<std::uint64_t>(layout_.words), payload, setup.region.lkey};
    read_segment_ = {reinterpret_cast<std::uint64_t>(layout_.read), kWord, setup.region.lkey};
    state_.cq = setup.cq;
    state_.queues = queues(setup);
    state_.source = layout_.word_span(payload);
    state_.write.wr_id = send_id(kWriteQueue);
    state_.write.opcode = IBV_WR_RDMA_WRITE;
    state_.write.send_flags = IBV_SEND_SIGNALED | (setup.operation.inlined ? IBV_SEND_INLINE : 0);
    state_.write.sg_list = &write_segment_;
    state_.write.num_sge = 1;
    state_.write.wr.rdma = {region.address, region.rkey};
    auto& [write, read] = state_.write_then_read;
    write = read = state_.write;
    write.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
    write.next = &read;
    read.opcode = IBV_WR_RDMA_READ;
    read.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    read.sg_list = &read_segment_;
    read.wr.rdma.remote_addr = region.address + payload - kWord;
    state_.message = message();
    state_.message_version = layout_.outgoing;
    state_.replies = post_recvs(setup);
    state_.goal = setup.goal;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    write_versions(node, state_, control, tally);
  }

  bool active() const override { return true; }
  std::uint64_t sent_to(std::uint32_t) const override { return state_.queues[kMessageQueue].posted(); }
  const VisibilityWriter& state() const { return state_; }

 private:
  ibv_sge write_segment_{};
  ibv_sge read_segment_{};
  VisibilityWriter state_;
};

class Reader final : public WorkloadOn<Reader>, private VisibilityEnd {
 public:
  explicit Reader(const ThreadSetup& setup) : VisibilityEnd(setup) {
    state_.cq = setup.cq;
    state_.queues = queues(setup);
    state_.words = layout_.word_span(setup.operation.payload);
    state_.reply = message();
    state_.reply_version = layout_.outgoing;
    state_.messages = post_recvs(setup);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    read_versions(node, state_, control, tally);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t received() const override { return state_.checked[0] + state_.checked[1]; }
  const VisibilityReader& state() const { return state_; }

 private:
  VisibilityReader state_;
};

// Formats a number of nanoseconds, or null.
std::string microseconds(const Json& ns) {
  return ns.is_number() ? fmt::format("{:.3f} us", ns.get<double>() / 1e3) : "no sample";
}

}  // namespace

std::uint64_t visibility_region_bytes(std::uint32_t payload) {
  return round_up(payload, kCacheLine.value) + 3 * kCacheLine.value;
}

std::unique_ptr<Workload> make_visibility_writer(const ThreadSetup& setup) {
  return std::make_unique<Writer>(setup);
}

std::unique_ptr<Workload> make_visibility_reader(const ThreadSetup& setup) {
  return std::make_unique<Reader>(setup);
}

Json visibility_results(const Workload& thread) {
  Json json = Json::object();
  if (const auto* writer = dynamic_cast<const Writer*>(&thread)) {
    for (std::size_t kind = 0; kind < kCheckedKinds; ++kind) {
      json.update(writer->state().latency[kind].to_json(fmt::format("{}_lat", kKindNames[kind])));
    }
  } else if (const auto* reader = dynamic_cast<const Reader*>(&thread)) {
    const VisibilityReader& seen = reader->state();
    json["order"] = Json{{"passes", seen.passes},
                         {"passes_within_a_write", seen.passes_within},
                         {"boundaries_seen", seen.in_order + seen.out_of_order},
                         {"out_of_order", seen.out_of_order}};
    for (std::size_t kind = 0; kind < kCheckedKinds; ++kind) {
      Json& visible = json[fmt::format("after_{}", kKindNames[kind])];
      visible = Json{{"told", seen.checked[kind]}, {"not_visible", seen.not_visible[kind]}};
      visible.update(seen.late[kind].to_json("late"));
    }
  }
  return json;
}

std::string visibility_text(const Json& result) {
  if (!result.contains("order")) return "";  // the result of the writer
  const Json& order = result.at("order");
  std::string text =
      fmt::format("  order: {} of {} boundaries within a WRITE were out of order, in {} passes over the words\n",
                  order.value("out_of_order", 0ull), order.value("boundaries_seen", 0ull), order.value("passes", 0ull));
  for (const auto& [key, what] : {std::pair{"after_write", "WRITEs"}, {"after_write_read", "WRITEs with a READ"}}) {
    const Json& visible = result.at(key);
    text += fmt::format("  completed {}: {} of {} not yet visible when the message arrived", what,
                        visible.value("not_visible", 0ull), visible.value("told", 0ull));
    if (visible.at("late_max_ns").is_number()) {
      text += fmt::format(", visible up to {} later", microseconds(visible.at("late_max_ns")));
    }
    text += "\n";
  }
  if (!result.contains("write_lat_p50_ns")) return text;
  const Json &plain = result.at("write_lat_p50_ns"), &with = result.at("write_read_lat_p50_ns");
  text += fmt::format("  median time to the completion (full round trip): WRITE {}, WRITE and READ {}",
                      microseconds(plain), microseconds(with));
  if (plain.is_number() && with.is_number()) {
    text += fmt::format(": {:.3f} us more", (with.get<double>() - plain.get<double>()) / 1e3);
  }
  return text + "\n";
}

}  // namespace verbscope
