// Four instructions that are inlined into a loop of another file.
#pragma once

inline void four_nops() {
  asm volatile("nop\n nop\n nop\n nop");
}
