// Finds programs in PATH.
#pragma once

#include <string>

namespace verbscope {

// Returns the path of the program in PATH. Throws "NAME is not installed: ...".
std::string find_program(const std::string& name);

}  // namespace verbscope
