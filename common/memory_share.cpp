#include "common/memory_share.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kReservedPart = 16;  // 1/16 of the free memory is left to other programs

std::size_t available_bytes() {
  static const std::size_t bytes = [] {
    std::ifstream in("/proc/meminfo");
    for (std::string word; in >> word;) {
      std::size_t kib = 0;
      if (word == "MemAvailable:" && in >> kib) return (kib << 10) / kReservedPart * (kReservedPart - 1);
    }
    return std::numeric_limits<std::size_t>::max();
  }();
  return bytes;
}

std::atomic<std::size_t> allocated{0};
std::atomic<std::size_t> next_report{1'000'000'000};

double gigabytes(std::size_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

}  // namespace

MemoryShare::~MemoryShare() {
  allocated.fetch_sub(bytes_);
}

void MemoryShare::add(std::size_t bytes, const char* what) {
  const std::size_t all = available_bytes();
  const std::size_t before = allocated.fetch_add(bytes);
  if (bytes > all || before > all - bytes) {
    allocated.fetch_sub(bytes);
    fail("not enough memory: {:.3g} GB for {}, {:.3g} GB already allocated, {:.3g} GB available", gigabytes(bytes),
         what, gigabytes(before), gigabytes(all));
  }
  bytes_ += bytes;
  const std::size_t total = before + bytes;
  std::size_t threshold = next_report.load();
  if (total < threshold || !next_report.compare_exchange_strong(threshold, std::max(2 * threshold, 2 * total))) return;
  print_error(fmt::format("with {}, this program has allocated {:.2g} GB of {:.2g} GB available memory", what,
                          gigabytes(total), gigabytes(all)));
}

}  // namespace verbscope
