// Support for processes that count and fork: the child counts from 0 into its own file, and no lock is held in it. The
// forking thread calls these around the fork, as pthread_atfork() does. Without counting they only take the lock.
#pragma once

namespace verbscope::driver {

// Locks the control path until one of the functions below.
void hold_for_fork();
void go_on_in_parent();
// `path`: the child's own file, as for start_counting().
void go_on_in_child(const char* path);

}  // namespace verbscope::driver
