// Secret values on a command line: --secret VALUE, --secret=VALUE, --password, --token, and variables such as
// VERBSCOPE_SECRET=VALUE.
#pragma once

#include <string>
#include <vector>

namespace verbscope {

// The words with "***" in place of each secret value.
std::vector<std::string> without_secrets(std::vector<std::string> words);

// Overwrites each secret value in this process's command line, which other users can read.
void hide_secrets(int argc, char** argv);

}  // namespace verbscope
