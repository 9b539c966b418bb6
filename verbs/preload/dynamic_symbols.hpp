// What preloaded libraries that replace functions of libibverbs share: the tracer's (drivers_patch/preload/) and the
// simulator's (simulate/preload/). Each defines these functions under libibverbs' names and versions. A process can
// have both: the first one that is preloaded calls the second one's functions as those of libibverbs. They do not
// depend on libibverbs, because they are loaded into any program.
//
// dynamic_symbols.cpp wraps dlsym, too, so that programs that open libibverbs by dlopen() find the same functions.
#pragma once

namespace verbscope::preload {

// A function by its name and version in libibverbs: that of the next preloaded library that replaces it; else
// libibverbs' own, wherever the program loaded it from. Null: not found.
void* find_in_libibverbs(const char* name, const char* version);

}  // namespace verbscope::preload
