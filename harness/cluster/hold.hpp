// `verbscope hold`: the remote end of a launcher. It runs one program for a harness on another host and ends it when
// its own standard input is closed: by the harness, by the death of the harness, or by a lost connection. There is no
// daemon, and nothing to clean up.
#pragma once

namespace verbscope {

// Runs the protocol of hold_protocol.hpp on standard input and output. Returns 0 once the end of the program was
// reported, whatever its status. Throws for an invalid request.
int hold_program();

}  // namespace verbscope
