// `verbscope hosts`: what a hosts file was understood to mean.
#pragma once

#include <cstdio>
#include <string>

namespace verbscope {

// `hosts` is a path, or "slurm" for the hosts of this allocation. Prints a line a host and who plays which role. Throws
// what read_hosts and cast_roles throw.
int show_hosts(const std::string& hosts, std::FILE* out);

}  // namespace verbscope
