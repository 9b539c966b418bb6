// Ranges of host names, as hosts files, pdsh and Slurm write them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// The most hosts that a file or a list may name.
inline constexpr std::size_t kMaxHosts = 4096;

// "node[01-03,7]" gives node01 node02 node03 node7, "n[0-8/4]" n0 n4 n8; of several ranges the last turns fastest.
// Throws, before it takes memory for the names, when brackets do not pair or are too many, a range runs backwards, or
// more than kMaxHosts come out.
std::vector<std::string> expand_host_range(std::string_view pattern, const std::string& where);

// The patterns of a list with commas between them: "node[01-03,7],me@login" has two. Throws for an empty one.
std::vector<std::string> split_host_list(std::string_view list, const std::string& where);

}  // namespace verbscope
