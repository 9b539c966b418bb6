// Quotes arguments for a shell. Needed only for OpenSSH, which passes one string to the remote login shell, and for
// sbatch, which takes a script.
#pragma once

#include <string>
#include <vector>

namespace verbscope {

// Returns a string that a POSIX shell splits into exactly these words, whatever they contain. Throws for a word with a
// null byte, which no argument can contain.
std::string shell_quote(const std::vector<std::string>& words);

}  // namespace verbscope
