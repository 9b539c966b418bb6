// A loop whose instructions are counted by hand: what callgrind_budget.py says of it must agree.
#include <cstdint>
#include <cstdlib>

#include "tests/perf/known_nops.hpp"

extern "C" {
// Three instructions.
void callee();
// Per operation: call, dec, jnz: 3 of its own.
void known_loop(std::uint64_t operations);
// Per operation: the four of known_nops.hpp, and two or three of its own.
[[gnu::noinline]] void inlined_loop(std::uint64_t operations) {
  for (; operations != 0; --operations) four_nops();
}
}

asm(R"(
  .text
  .globl callee
  .type callee, @function
callee:
  nop
  nop
  ret
  .size callee, .-callee
  .globl known_loop
  .type known_loop, @function
known_loop:
  push %rbx
  mov %rdi, %rbx
1:
  call callee
  dec %rbx
  jnz 1b
  pop %rbx
  ret
  .size known_loop, .-known_loop
)");

int main(int argc, char** argv) {
  if (argc != 2) return 0;
  known_loop(std::strtoull(argv[1], nullptr, 10));
  inlined_loop(std::strtoull(argv[1], nullptr, 10));
  return 0;
}
