// The only place where arguments become text that a shell reads: OpenSSH hands the remote login shell one string,
// sbatch takes a script.
#pragma once

#include <string>
#include <vector>

namespace verbscope {

// One string that a POSIX shell splits into exactly these words, whatever is in them. Throws for a word with a null
// byte, which no argument can hold.
std::string shell_quote(const std::vector<std::string>& words);

}  // namespace verbscope
