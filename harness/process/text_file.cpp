#include "harness/process/text_file.hpp"

#include <fstream>

#include "common/error.hpp"

namespace verbscope {

std::string read_text_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) fail("cannot read {}: it is a folder", path.string());
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read {}: {}", path.string(), errno_text(errno));
  std::string text(kMaxTextBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) fail("cannot read {}: {}", path.string(), errno_text(errno));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxTextBytes) fail("cannot read {}: more than {} bytes", path.string(), kMaxTextBytes);
  return text;
}

}  // namespace verbscope
