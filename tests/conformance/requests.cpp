#include "tests/conformance/requests.hpp"

namespace verbscope::conformance {

Request read_of(const ibv_sge& local, const Side& from, std::size_t offset) {
  return {.opcode = IBV_WR_RDMA_READ, .sges = {local}, .remote = from.address(offset), .rkey = from.mr()->rkey};
}

Request write_to(const ibv_sge& local, const Side& to, std::size_t offset) {
  return {.opcode = IBV_WR_RDMA_WRITE, .sges = {local}, .remote = to.address(offset), .rkey = to.mr()->rkey};
}

Request fetch_add(const ibv_sge& result, const Side& at, std::size_t offset, std::uint64_t add) {
  return {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
          .sges = {result},
          .remote = at.address(offset),
          .rkey = at.mr()->rkey,
          .compare_add = add};
}

Request compare_swap(const ibv_sge& result, const Side& at, std::size_t offset, std::uint64_t compare,
                     std::uint64_t swap) {
  return {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
          .sges = {result},
          .remote = at.address(offset),
          .rkey = at.mr()->rkey,
          .compare_add = compare,
          .swap = swap};
}

bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

const char* opcode_name(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
      return "Send";
    case IBV_WR_SEND_WITH_IMM:
      return "SendWithImmediate";
    case IBV_WR_RDMA_WRITE:
      return "Write";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "WriteWithImmediate";
    case IBV_WR_RDMA_READ:
      return "Read";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return "FetchAndAdd";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return "CompareAndSwap";
    default:
      return "Other";
  }
}

void fill(std::uint8_t* memory, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i)
    memory[i] = static_cast<std::uint8_t>((i * 31 + (i >> 8) * 7 + seed * 101) % 255 + 1);
}

testing::AssertionResult has_pattern(const std::uint8_t* memory, std::size_t bytes, unsigned seed, std::size_t place) {
  std::vector<std::uint8_t> expected(place + bytes);
  fill(expected.data(), expected.size(), seed);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != expected[place + i]) {
      return testing::AssertionFailure() << "byte " << i << " of " << bytes << " is " << unsigned{memory[i]} << ", not "
                                         << unsigned{expected[place + i]};
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult is_zero(const std::uint8_t* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != 0) return testing::AssertionFailure() << "byte " << i << " of " << bytes << " is not zero";
  }
  return testing::AssertionSuccess();
}

}  // namespace verbscope::conformance
