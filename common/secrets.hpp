// Values on a command line that must not be kept: --secret VALUE, --secret=VALUE, --password, --token, and variables
// such as VERBSCOPE_SECRET=VALUE.
#pragma once

#include <string>
#include <vector>

namespace verbscope {

// The words with "***" in the place of each such value.
std::vector<std::string> without_secrets(std::vector<std::string> words);

// Overwrites each such value where the system keeps the command line of this process, which others can read.
void hide_secrets(int argc, char** argv);

}  // namespace verbscope
