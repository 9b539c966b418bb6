// A process that counts and forks: its child counts for itself, from 0 on, and finds no lock held. To be called around
// a fork by the thread that forks, as pthread_atfork() does; where nothing is counted they do nothing.
#pragma once

namespace verbscope::driver {

// Waits until the control path is idle, and keeps it so.
void hold_for_fork();
void go_on_in_parent();
// `path`: the child's own file, as of start_counting().
void go_on_in_child(const char* path);

}  // namespace verbscope::driver
