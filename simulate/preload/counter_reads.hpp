// Finds the instructions that read the time stamp counter in the code of a loaded object.
#pragma once

#include <link.h>

#include <cstdint>
#include <vector>

namespace verbscope::simulate {

enum class CounterRead : std::uint8_t { rdtsc, rdtscp };
constexpr int bytes_of(CounterRead read) {
  return read == CounterRead::rdtsc ? 2 : 3;
}

struct FoundRead {
  std::uint64_t address;
  CounterRead read;
};

// Returns those in functions that .eh_frame describes. Compilers describe all functions, assembly code may not.
std::vector<FoundRead> find_counter_reads(const dl_phdr_info& object);

}  // namespace verbscope::simulate
