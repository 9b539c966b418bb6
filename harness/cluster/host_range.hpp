// Ranges of host names, as hosts files and Slurm write them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// The most hosts that a file or a list may name.
inline constexpr std::size_t kMaxHosts = 4096;

// "node[01-03,7]" gives node01 node02 node03 node7. Throws when brackets do not pair, a range runs backwards, or more
// than kMaxHosts come out.
std::vector<std::string> expand_host_range(const std::string& pattern, const std::string& where);

// The patterns of a list with commas between them: "node[01-03,7],me@login" has two. Throws for an empty one.
std::vector<std::string> split_host_list(std::string_view list, const std::string& where);

// The names of such a list, as in SLURM_JOB_NODELIST. Throws what both throw.
std::vector<std::string> expand_host_list(std::string_view list, const std::string& where);

}  // namespace verbscope
