// What the operating system tells of the programs' threads, in /proc.
#pragma once

#include <cstdint>

namespace verbscope::simulate {

struct ThreadState {
  char state = 'X';               // such as R or S; X if it is gone
  int parent = 0;                 // of its process
  std::uint64_t page_faults = 0;  // so far, without those that wait for a disk

  bool ended() const { return state == 'X' || state == 'Z'; }
  // D: it waits for a disk, or for a child to begin a program.
  bool runs() const { return state == 'R' || state == 'D'; }
};
ThreadState state_of(int process, int thread);

// True if the process has a handler for the signal.
bool catches(int process, int signal);

}  // namespace verbscope::simulate
