// Reading the small text files that a person edits.
#pragma once

#include <filesystem>
#include <string>

namespace verbscope {

// No file of ours comes near this size; a device or a core dump given by mistake does.
inline constexpr std::size_t kMaxTextBytes = 16u << 20;

// The text of the whole file. Throws "cannot read PATH: reason", also when it is larger than kMaxTextBytes.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace verbscope
