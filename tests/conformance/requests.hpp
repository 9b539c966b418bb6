// Send work requests as a test writes them, and bytes to move.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/conformance/link.hpp"
#include "tests/conformance/side.hpp"

namespace verbscope::conformance {

// A send work request. Fields that an operation does not have are ignored.
struct Request {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::vector<ibv_sge> sges{};
  std::uint64_t id = 1;
  unsigned flags = IBV_SEND_SIGNALED;
  std::uint32_t immediate = 0;  // goes into imm_data
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  ibv_ah* ah = nullptr;  // UD; null: the peer of connect()
  std::uint32_t qpn = 0;
  std::uint32_t qkey = kQkey;
  std::uint32_t srqn = 0;  // XRC
};

// Requests on the region of a whole side, from or to `offset` in its memory.
Request read_of(const ibv_sge& local, const Side& from, std::size_t offset);
Request write_to(const ibv_sge& local, const Side& to, std::size_t offset);
Request fetch_add(const ibv_sge& result, const Side& at, std::size_t offset, std::uint64_t add);
Request compare_swap(const ibv_sge& result, const Side& at, std::size_t offset, std::uint64_t compare,
                     std::uint64_t swap);
bool is_atomic(ibv_wr_opcode opcode);
const char* opcode_name(ibv_wr_opcode opcode);

// Bytes that depend on their place and on `seed`; none is zero.
void fill(std::uint8_t* memory, std::size_t bytes, unsigned seed);
testing::AssertionResult has_pattern(const std::uint8_t* memory, std::size_t bytes, unsigned seed,
                                     std::size_t place = 0);
testing::AssertionResult is_zero(const std::uint8_t* memory, std::size_t bytes);

}  // namespace verbscope::conformance
