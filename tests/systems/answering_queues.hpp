// The send queues by which a server's thread answers in a test: UD QPs of a device that executes at once, and the
// prebuilt requests of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "systems/answers/queue.hpp"
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
      queues.push_back({.lane = {.qp = device.add_qp(), .depth = depth, .room = depth, .signal_every = signal_every},
                        .requests = std::span(requests).subspan(std::size_t{q} * depth, depth),
                        .index = q});
    }
  }

  std::vector<ibv_send_wr> requests;
  std::vector<ibv_sge> segments;
  std::vector<std::uint64_t> bodies;
  std::vector<AnswerQueue> queues;
};

}  // namespace verbscope::test
