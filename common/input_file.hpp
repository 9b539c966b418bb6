// Files that a command is told to read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/fd.hpp"

namespace verbscope {

// No file that a person edits comes near this size; a device or a core dump given by mistake does.
inline constexpr std::size_t kMaxTextBytes = 16u << 20;

// Opens a regular file, or what this process was started with (/dev/stdin, /dev/fd/N). Anything else, a named pipe
// whose writer never comes among it, is refused. Errors begin with `what`.
Fd open_input(const std::filesystem::path& path, const std::string& what);

// The text of the whole file, without a byte order mark and with plain line ends. Throws "cannot read PATH: reason",
// also when it is larger than kMaxTextBytes.
std::string read_text_file(const std::filesystem::path& path);

// `text` without the byte order mark that some editors write first.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace verbscope
