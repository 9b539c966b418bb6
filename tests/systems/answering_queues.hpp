// The queues of a server's thread in a test, on a device that executes at once: UD QPs by which it answers, with the
// prebuilt requests of each, and RECVs for the messages of its clients.
#pragma once

#include <endian.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "microbench/loop/recv_loop.hpp"
#include "systems/requests/server.hpp"
#include "tests/microbench/executing_device.hpp"

namespace verbscope::test {

struct AnsweringQueues {
  // So many queues of `depth` requests, one of `signal_every` signaled, each with up to 8 bytes of its own.
  AnsweringQueues(ExecutingDevice& device, std::uint32_t count, std::uint32_t depth, std::uint32_t signal_every)
      : requests(std::size_t{count} * depth), segments(requests.size()), bodies(requests.size()) {
    for (std::uint32_t i = 0; i < requests.size(); ++i) {
      segments[i] = {reinterpret_cast<std::uint64_t>(&bodies[i]), sizeof bodies[i], 0};
      requests[i].wr_id = send_id(i / depth);
      requests[i].sg_list = &segments[i];
      requests[i].num_sge = 1;
      requests[i].opcode = IBV_WR_SEND_WITH_IMM;
    }
    for (std::uint32_t q = 0; q < count; ++q) {
      queues.push_back({.qp = device.add_qp(),
                        .index = q,
                        .depth = depth,
                        .signal_every = signal_every,
                        .ring = std::span(requests).subspan(std::size_t{q} * depth, depth)});
    }
  }

  std::vector<ibv_send_wr> requests;
  std::vector<ibv_sge> segments;
  std::vector<std::uint64_t> bodies;
  std::vector<SendQueue> queues;
};

// RECVs of one QP, each of which is posted again by itself. A message has a GRH before it and an immediate.
struct MessageQueue {
  static constexpr std::uint64_t kStride = 128;  // bytes of a RECV

  MessageQueue(ExecutingDevice& on, std::uint32_t count)
      : device(on), memory(count * kStride), segments(count), ring(count) {
    for (std::uint32_t j = 0; j < count; ++j) {
      segments[j] = {reinterpret_cast<std::uint64_t>(memory.data() + j * kStride), kStride, 0};
      ring[j].wr_id = recv_id(0, j);
      ring[j].sg_list = &segments[j];
      ring[j].num_sge = 1;
    }
    lanes.push_back({.qp = device.add_qp(), .ring = ring.data(), .length = count});
    lanes.front().payloads = memory.data() + kGrh.value;
    lanes.front().stride = kStride;
    for (std::uint32_t j = 0; j < count; ++j) EXPECT_EQ(post_next_recvs(lanes.front()), 0);
    device.edit = [this](ibv_wc& wc) {
      if (is_send_id(wc.wr_id)) return;
      wc.imm_data = htobe32(immediates.front());
      immediates.pop_front();
    };
  }

  void deliver(std::span<const std::byte> message, std::uint32_t immediate) {
    std::vector<std::byte> bytes(kGrh.value);
    bytes.insert(bytes.end(), message.begin(), message.end());
    device.deliver(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    immediates.push_back(immediate);
  }

  ExecutingDevice& device;
  std::vector<std::byte> memory;
  std::vector<ibv_sge> segments;
  std::vector<ibv_recv_wr> ring;
  std::vector<RecvLane> lanes;
  std::deque<std::uint32_t> immediates;  // of the messages that no poll has brought yet
};

}  // namespace verbscope::test
