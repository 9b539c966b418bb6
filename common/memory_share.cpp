#include "common/memory_share.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>

#include "common/error.hpp"
#include "common/terminal.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kLeftPart = 16;  // 1/16 of the free memory is left to other programs

std::size_t bytes_to_give() {
  static const std::size_t bytes = [] {
    std::ifstream in("/proc/meminfo");
    for (std::string word; in >> word;) {
      std::size_t kib = 0;
      if (word == "MemAvailable:" && in >> kib) return (kib << 10) / kLeftPart * (kLeftPart - 1);
    }
    return std::numeric_limits<std::size_t>::max();
  }();
  return bytes;
}

std::atomic<std::size_t> taken{0};
std::atomic<std::size_t> next_told{1'000'000'000};

double gigabytes(std::size_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

}  // namespace

MemoryShare::~MemoryShare() {
  taken.fetch_sub(bytes_);
}

void MemoryShare::add(std::size_t bytes, const char* what) {
  const std::size_t all = bytes_to_give();
  const std::size_t before = taken.fetch_add(bytes);
  if (bytes > all || before > all - bytes) {
    taken.fetch_sub(bytes);
    fail("{:.3g} GB for {} beside {:.3g} GB taken before: this machine has {:.3g} GB to give", gigabytes(bytes), what,
         gigabytes(before), gigabytes(all));
  }
  bytes_ += bytes;
  const std::size_t taken_now = before + bytes;
  std::size_t told = next_told.load();
  if (taken_now < told || !next_told.compare_exchange_strong(told, std::max(2 * told, 2 * taken_now))) return;
  tell_error(fmt::format("{} take this program's memory to {:.2g} GB, of {:.2g} GB that this machine has to give", what,
                         gigabytes(taken_now), gigabytes(all)));
}

}  // namespace verbscope
