// The memory of a send queue. The first byte chooses the family and whether the others are that memory, whatever they
// are, or say what is laid out there by hand: then what is read back is what was laid.
#include <algorithm>
#include <array>
#include <vector>

#include "drivers_patch/queue_memory/decode.hpp"
#include "tests/drivers_patch/hand_laid.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace verbscope;
using namespace verbscope::driver;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  // 0 behind the end.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (; bytes > 0; --bytes) value = value << 8 | (at_ == end_ ? 0u : *at_++);
    return value;
  }
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(number(2) % limit); }
  bool flag() { return (number(1) & 1) != 0; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

void check(bool holds, const char* what) {
  if (!holds) fuzz::report("a WQE", what);
}

// What is true of each WQE, whatever the memory has.
void check_read(const SendQueue& queue, std::uint32_t position, Refusal refusal, const Wqe& wqe) {
  const std::uint64_t place = queue.family == NicFamily::mlx4 ? queue.slot_bytes : queue.bytes();
  check(wqe.bytes <= place && wqe.bytes <= kMaxWqeBytes, "is longer than its place");
  check(wqe.blocks == (wqe.bytes + 63) / 64, "has other blocks than its size");
  const std::uint32_t rounds = queue.family == NicFamily::mlx4 ? 2 * queue.slots : 65536;
  check(position_behind(queue, position, wqe.blocks) < rounds, "is followed by no position");
  if (refusal != Refusal::none) return;
  check(16 + 16 * wqe.elements + wqe.inline_bytes <= wqe.bytes, "has more data than bytes");
  check(((wqe.flags & IBV_SEND_INLINE) != 0) == (wqe.inline_bytes > 0),
        "is inline without data or has data and is not");
}

void read_memory(NicFamily family, Input& input) {
  struct alignas(64) Line {
    std::array<std::uint8_t, 64> bytes;
  };
  const bool mlx4 = family == NicFamily::mlx4;
  const std::uint32_t slots = 1u << input.below(6), slot_bytes = mlx4 ? 64u << input.below(4) : 64u;
  const auto transport = static_cast<Transport>(input.below(3));
  const auto position = static_cast<std::uint32_t>(input.number(4)) % (mlx4 ? 2 * slots : 65536u);
  std::array<std::uint32_t, 2> record;
  for (std::uint32_t& word : record) word = static_cast<std::uint32_t>(input.number(4));
  std::vector<Line> memory(slots * slot_bytes / sizeof(Line));
  for (Line& line : memory) {
    for (std::uint8_t& byte : line.bytes) byte = static_cast<std::uint8_t>(input.number(1));
  }
  const SendQueue queue{.family = family,
                        .memory = reinterpret_cast<const std::byte*>(memory.data()),
                        .slots = slots,
                        .slot_bytes = slot_bytes,
                        .doorbell_record = mlx4 ? nullptr : record.data()};
  check(is_queue(queue), "is in no queue");
  std::uint32_t next = position;
  for (int i = 0; i < 8; ++i) {
    Wqe wqe;
    const Refusal refusal = decode(queue, transport, next, wqe);
    check_read(queue, next, refusal, wqe);
    next = position_behind(queue, next, wqe.blocks);
  }
  const std::uint32_t written = next_position(queue, position);
  check(written < (mlx4 ? 2 * slots : 65536u), "is written at no position");
  if (mlx4) check(next_position(queue, written) == written, "is written elsewhere, as its position is guessed");
}

struct Choice {
  unsigned number;
  ibv_wr_opcode opcode;
  bool one_sided;
  bool atomic;
};
constexpr Choice kChoices[] = {{kSend, IBV_WR_SEND, false, false},
                               {kSendImm, IBV_WR_SEND_WITH_IMM, false, false},
                               {kSendInv, IBV_WR_SEND_WITH_INV, false, false},
                               {kWrite, IBV_WR_RDMA_WRITE, true, false},
                               {kWriteImm, IBV_WR_RDMA_WRITE_WITH_IMM, true, false},
                               {kRead, IBV_WR_RDMA_READ, true, false},
                               {kCompareSwap, IBV_WR_ATOMIC_CMP_AND_SWP, true, true},
                               {kFetchAdd, IBV_WR_ATOMIC_FETCH_AND_ADD, true, true}};
constexpr std::uint32_t kOfTransport[] = {8, 5, 3};  // the first of them that RC, UC and UD have

HandWqe choose_wqe(const Choice& choice, bool datagram, Input& input) {
  HandWqe wqe{.opcode = choice.number};
  wqe.signaled = input.flag();
  wqe.fence = input.flag();
  wqe.solicited = input.flag();
  wqe.immediate = static_cast<std::uint32_t>(input.number(4));
  wqe.datagram = datagram;
  if (datagram) {
    wqe.remote_qpn = static_cast<std::uint32_t>(input.number(3));
    wqe.qkey = static_cast<std::uint32_t>(input.number(4));
  }
  wqe.one_sided = choice.one_sided;
  if (choice.one_sided) {
    wqe.remote_address = input.number(8);
    wqe.rkey = static_cast<std::uint32_t>(input.number(4));
  }
  wqe.atomic = choice.atomic;
  if (choice.atomic) {
    wqe.swap_or_add = input.number(8);
    wqe.compare = input.number(8);
  }
  constexpr std::uint32_t kMostInline = 800, kMostElements = 50;  // of which the longest takes less than 1008 bytes
  if (input.flag()) {
    wqe.inline_data.resize(input.below(kMostInline));
    for (std::uint8_t& byte : wqe.inline_data) byte = static_cast<std::uint8_t>(input.number(1));
  } else {
    wqe.elements.resize(input.below(kMostElements));
    for (ibv_sge& element : wqe.elements) {
      element = {.addr = input.number(8),
                 .length = static_cast<std::uint32_t>(input.number(4)) & 0x7fffffff,
                 .lkey = static_cast<std::uint32_t>(input.number(4))};
    }
  }
  return wqe;
}

void check_same(NicFamily family, const Choice& choice, const HandWqe& laid, const Wqe& read) {
  check(read.opcode == choice.opcode, "has another opcode");
  check(((read.flags & IBV_SEND_SIGNALED) != 0) == laid.signaled &&
            ((read.flags & IBV_SEND_FENCE) != 0) == laid.fence &&
            ((read.flags & IBV_SEND_SOLICITED) != 0) == laid.solicited && read.immediate == laid.immediate,
        "has another control segment");
  check(read.remote_qpn == laid.remote_qpn && read.qkey == laid.qkey, "has another target");
  check(read.remote_address == laid.remote_address && read.rkey == laid.rkey, "has another remote address");
  check(read.swap_or_add == laid.swap_or_add && read.compare == laid.compare, "has other operands");
  check(std::equal(laid.inline_data.begin(), laid.inline_data.end(), read.inline_data.begin(),
                   read.inline_data.begin() + read.inline_bytes,
                   [](std::uint8_t a, std::byte b) { return a == static_cast<std::uint8_t>(b); }),
        "has other inline data");
  std::vector<ibv_sge> elements = laid.elements;
  if (family == NicFamily::mlx5) std::erase_if(elements, [](const ibv_sge& each) { return each.length == 0; });
  check(std::equal(elements.begin(), elements.end(), read.gather.begin(), read.gather.begin() + read.elements,
                   [](const ibv_sge& a, const ibv_sge& b) {
                     return a.addr == b.addr && a.length == b.length && a.lkey == b.lkey;
                   }),
        "has other elements");
}

void lay_and_read(NicFamily family, Input& input) {
  const bool mlx4 = family == NicFamily::mlx4;
  HandQueue memory = mlx4 ? HandQueue(family, 2, 1024) : HandQueue(family, 16, 64, input.below(65536));
  const auto transport = static_cast<Transport>(input.below(3));
  while (input.left() > 0) {
    const Choice& choice = kChoices[input.below(kOfTransport[static_cast<std::size_t>(transport)])];
    const HandWqe laid = choose_wqe(choice, transport == Transport::ud, input);
    const std::uint32_t position = memory.lay(laid);
    memory.ring();
    Wqe read;
    const Refusal refusal = decode(memory.queue(), transport, position, read);
    if (refusal != Refusal::none)
      fuzz::report("a WQE that was laid is refused", std::string(row_of(kRefusals, refusal).text));
    check_read(memory.queue(), position, refusal, read);
    check_same(family, choice, laid, read);
    const std::uint32_t behind = position_behind(memory.queue(), position, read.blocks);
    check(behind == memory.position() && next_position(memory.queue(), position) == behind, "is followed by another");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::uint64_t how = input.number(1);
  const NicFamily family = (how & 1) != 0 ? NicFamily::mlx4 : NicFamily::mlx5;
  if ((how & 2) != 0) {
    lay_and_read(family, input);
  } else {
    read_memory(family, input);
  }
  return 0;
}
