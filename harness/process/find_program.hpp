// Programs of the system, by name.
#pragma once

#include <string>

namespace verbscope {

// The path of the program in PATH. Throws "NAME is not installed: ...".
std::string find_program(const std::string& name);

}  // namespace verbscope
