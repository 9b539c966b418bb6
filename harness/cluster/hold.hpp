// `verbscope hold`: the far end of a launcher. It runs one program for a harness elsewhere and ends it when its own
// standard input is closed: when the harness says so, dies, or the connection is cut. No daemon, nothing to clean up.
#pragma once

namespace verbscope {

// Speaks hold_protocol.hpp over standard input and output. Returns 0 once the end of the program was told, however it
// ended. Throws on a request that is none.
int hold_program();

}  // namespace verbscope
