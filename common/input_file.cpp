#include "common/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "common/error.hpp"

namespace verbscope {

Fd open_input(const std::filesystem::path& path, const std::string& what) {
  // O_NONBLOCK: does not wait for the writer of a pipe.
  Fd file(check(what, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  struct stat status {};
  check(what, ::fstat(file.get(), &status));
  if (S_ISDIR(status.st_mode)) fail("{}: it is a folder", what);
  if (S_ISREG(status.st_mode)) return file;
  const std::string name = path.string();
  if (name != "/dev/stdin" && !name.starts_with("/dev/fd/") && !name.starts_with("/proc/self/fd/")) {
    fail("{}: it is no regular file; /dev/stdin reads standard input", what);
  }
  return Fd(check(what, ::open(path.c_str(), O_RDONLY | O_CLOEXEC)));  // blocking: its writer exists
}

std::string read_text_file(const std::filesystem::path& path) {
  const std::string what = "cannot read " + path.string();
  const Fd file = open_input(path, what);
  std::string text;
  std::array<char, 65536> block;
  while (text.size() <= kMaxTextBytes) {
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(what, errno);
    if (n == 0) break;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
  if (text.size() > kMaxTextBytes) fail("{}: more than {} bytes", what, kMaxTextBytes);
  text.erase(0, text.size() - without_byte_order_mark(text).size());
  const auto returns = [&text](std::size_t i) { return text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n'; };
  std::size_t to = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!returns(i)) text[to++] = text[i];
  }
  text.resize(to);
  return text;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

}  // namespace verbscope
