#include "systems/sequencer/receipts.hpp"

#include <sys/mman.h>

#include <bit>
#include <cerrno>

#include "common/error.hpp"
#include "common/hash.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kBytes = ValueAudit::kCapacity / 8;
constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

ValueAudit::ValueAudit(std::uint64_t first) : first_(first) {
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw_errno("map the audit of received values", errno);
  words_ = static_cast<std::uint64_t*>(memory);
}

ValueAudit::~ValueAudit() {
  ::munmap(words_, kBytes);
}

std::uint64_t ValueAudit::noted(std::uint64_t values) const {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < values / 64; ++i) count += static_cast<std::uint64_t>(std::popcount(words_[i]));
  if (values % 64 == 0) return count;
  const std::uint64_t rest = words_[values / 64] & ((std::uint64_t{1} << values % 64) - 1);
  return count + static_cast<std::uint64_t>(std::popcount(rest));
}

std::string ValueAudit::pack(std::uint64_t values) const {
  std::string out;
  out.reserve((values + 3) / 4);
  for (std::uint64_t i = 0; i < values; i += 4) out += kDigits[words_[i / 64] >> i % 64 & 15];
  return out;
}

std::uint64_t ValueAudit::merge(const std::string& packed, const std::string& where) {
  if (packed.size() > kCapacity / 4)
    fail("{}: {} digits, more than the {} of a whole account", where, packed.size(), kCapacity / 4);
  std::uint64_t twice = 0;
  for (std::uint64_t i = 0; i < packed.size(); ++i) {
    const std::size_t digit = kDigits.find(packed[i]);
    if (digit == std::string_view::npos) fail("{}: expected hexadecimal digits", where);
    std::uint64_t& word = words_[i / 16];
    const std::uint64_t bits = std::uint64_t{digit} << i % 16 * 4;
    twice += static_cast<std::uint64_t>(std::popcount(word & bits));
    word |= bits;
  }
  return twice;
}

std::uint64_t fingerprint_of_range(std::uint64_t first, std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += mix(first + i);
  return sum;
}

}  // namespace verbscope
