// The time stamp counter, in virtual time: hlt takes the place of each instruction that reads it. The processor raises
// SIGSEGV for hlt, whose handler here puts the virtual counter into the registers. PR_SET_TSC would do without a change
// of the code, but some virtual machines ignore it.
#pragma once

namespace verbscope::simulate {

// In all objects of the process, and in those that dlopen(3) loads from now on.
void replace_counter_reads();

}  // namespace verbscope::simulate
