#include "simulate/preload/counter_reads.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <span>

namespace verbscope::simulate {
namespace {

// .eh_frame_hdr as linkers write it: Linux Standard Base 5.0, Core, section 10.6.2.
struct TableEntry {
  std::int32_t function;     // its first byte, from the table's first on
  std::int32_t description;  // its FDE, likewise
};
struct Table {
  std::uint8_t version, frame_encoding, count_encoding, entry_encoding;
  std::int32_t frame;
  std::uint32_t count;

  std::span<const TableEntry> entries() const {
    constexpr std::uint8_t kUnsigned4 = 0x03, kSigned4FromTable = 0x3b;
    if (version != 1 || count_encoding != kUnsigned4 || entry_encoding != kSigned4FromTable) return {};
    return {reinterpret_cast<const TableEntry*>(this + 1), count};
  }
};
// The beginning of an FDE whose addresses have four bytes, from their own place on: what compilers write.
struct Description {
  std::uint32_t bytes, common;
  std::int32_t function;
  std::uint32_t function_bytes;
};

struct Function {
  const std::uint8_t *begin, *end;
};

// The function that has the address; none: an empty one.
Function function_at(const Table& table, const std::uint8_t* at) {
  const auto* const base = reinterpret_cast<const std::uint8_t*>(&table);
  const auto entries = table.entries();
  const auto after =
      std::ranges::upper_bound(entries, at - base, {}, [](const TableEntry& entry) { return entry.function; });
  if (after == entries.begin()) return {};
  const TableEntry& entry = *(after - 1);
  const auto& description = *reinterpret_cast<const Description*>(base + entry.description);
  const auto* const begin = base + entry.function;
  if (reinterpret_cast<const std::uint8_t*>(&description.function) + description.function != begin) return {};
  const auto* const end = begin + description.function_bytes;
  return at < end ? Function{begin, end} : Function{};
}

// Goes through functions by their instructions, at ascending addresses.
class Walk {
 public:
  explicit Walk(const Table& table) : table_(table) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&decoder_, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
  }

  // False for bytes within another instruction, such as those of a constant.
  bool is_instruction(const std::uint8_t* at) {
    if (at >= function_.end) {
      function_ = function_at(table_, at);
      next_ = function_.begin;
    }
    while (next_ < at && next_ < function_.end) {
      ZydisDecodedInstruction instruction;
      const auto left = static_cast<ZyanUSize>(function_.end - next_);
      if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder_, nullptr, next_, left, &instruction))) {
        next_ = function_.end;
        return false;
      }
      next_ += instruction.length;
    }
    return next_ == at && at < function_.end;
  }

 private:
  const Table& table_;
  ZydisDecoder decoder_;
  Function function_{};
  const std::uint8_t* next_ = nullptr;
};

bool may_begin_here(const std::uint8_t* at) {
  return at[0] == 0x0f && (at[1] == 0x31 || at[1] == 0x01);
}

// The search spends most of its time here. The loop has no branch, so that the compiler can use vector instructions.
constexpr std::ptrdiff_t kBlockBytes = 64;
bool may_begin_in_block(const std::uint8_t* begin) {
  std::uint8_t any = 0;
  for (std::ptrdiff_t i = 0; i < kBlockBytes; ++i) {
    const bool second = begin[i + 1] == 0x31 || begin[i + 1] == 0x01;
    any |= static_cast<std::uint8_t>(begin[i] == 0x0f) & static_cast<std::uint8_t>(second);
  }
  return any != 0;
}

// Adds those between `begin` and `end`.
void find_in(const std::uint8_t* begin, const std::uint8_t* end, Walk& walk, std::vector<FoundRead>& found) {
  const auto* const last = end - bytes_of(CounterRead::rdtscp);
  for (const std::uint8_t* at = begin; at <= last; ++at) {
    while (last - at > kBlockBytes && !may_begin_in_block(at)) at += kBlockBytes;
    if (!may_begin_here(at)) continue;
    const bool rdtsc = at[1] == 0x31;
    if ((!rdtsc && at[2] != 0xf9) || !walk.is_instruction(at)) continue;
    found.push_back({reinterpret_cast<std::uint64_t>(at), rdtsc ? CounterRead::rdtsc : CounterRead::rdtscp});
  }
}

}  // namespace

std::vector<FoundRead> find_counter_reads(const dl_phdr_info& object) {
  const std::span segments(object.dlpi_phdr, object.dlpi_phnum);
  const auto header = std::ranges::find(segments, PT_GNU_EH_FRAME, &ElfW(Phdr)::p_type);
  if (header == segments.end()) return {};
  const auto in_memory = [&object](const ElfW(Phdr) & segment) {
    return reinterpret_cast<const std::uint8_t*>(object.dlpi_addr + segment.p_vaddr);
  };
  Walk walk(*reinterpret_cast<const Table*>(in_memory(*header)));
  std::vector<FoundRead> found;
  for (const auto& segment : segments) {
    if (segment.p_type != PT_LOAD || segment.p_flags != (PF_R | PF_X)) continue;
    find_in(in_memory(segment), in_memory(segment) + segment.p_filesz, walk, found);
  }
  return found;
}

}  // namespace verbscope::simulate
