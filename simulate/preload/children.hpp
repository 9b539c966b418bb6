// Which of the programs that a program begins take part in the simulation.
#pragma once

namespace verbscope::simulate {

// True if the program `file` loads this library: it is linked dynamically, `environment` names the library, and the
// kernel does not start it with privileges that the caller has not. Others run outside of the simulation. `by_path`:
// the name is looked for in PATH, as execvp(3) does.
bool takes_part(const char* file, char* const* environment, bool by_path);

}  // namespace verbscope::simulate
