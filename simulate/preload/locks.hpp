// The locks of other parts of this library, and of programs.
#pragma once

#include <pthread.h>

namespace verbscope::simulate {

// pthread_mutex_lock(3) and pthread_mutex_unlock(3), waiting in virtual time.
int lock_mutex(pthread_mutex_t* mutex);
int unlock_mutex(pthread_mutex_t* mutex);

}  // namespace verbscope::simulate
