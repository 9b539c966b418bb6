// Reads input files of commands.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/fd.hpp"

namespace verbscope {

// Text files are far smaller; a device or a core dump given by mistake is not.
inline constexpr std::size_t kMaxTextBytes = 16u << 20;

// Opens a regular file, or a descriptor passed at start (/dev/stdin, /dev/fd/N). Refuses everything else, such as a
// named pipe, which may never get a writer. Errors begin with `what`.
Fd open_input(const std::filesystem::path& path, const std::string& what);

// Returns the whole text, without a byte order mark and with LF line ends. Throws "cannot read PATH: reason", also if
// the file is larger than kMaxTextBytes.
std::string read_text_file(const std::filesystem::path& path);

// `text` without the byte order mark that some editors write.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace verbscope
