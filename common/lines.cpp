#include "common/lines.hpp"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "common/error.hpp"
#include "common/files.hpp"
#include "common/json.hpp"

namespace verbscope {

namespace {
constexpr std::size_t kLineBlock = 1 << 20;
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 30;
}  // namespace

Lines::Lines(const std::filesystem::path& path, std::string what)
    : path_(path.string()), what_(std::move(what)), file_(open_input(path, what_)) {}

bool Lines::next() {
  line_.clear();
  ++number_;
  std::size_t bytes = 0;
  while (true) {
    const std::string_view rest = std::string_view(block_).substr(at_);
    const std::string_view part = rest.substr(0, rest.find('\n'));
    bytes += part.size();
    if (bytes <= kMaxJsonBytes) line_ += number_ == 1 ? without_byte_order_mark(part) : part;
    too_long_ = bytes > kMaxJsonBytes;
    at_ += part.size();
    ended_ = at_ < block_.size();
    if (ended_) {
      ++at_;
      return true;
    }
    if (bytes > kMaxLineBytes) fail("{}:{}: the line is longer than {} bytes", path_, number_, kMaxLineBytes);
    if (!read_block()) return bytes > 0;
  }
}

bool Lines::read_block() {
  block_.resize(kLineBlock);
  at_ = 0;
  ssize_t n = 0;
  while ((n = ::read(file_.get(), block_.data(), block_.size())) < 0 && errno == EINTR) {
  }
  if (n < 0) throw_errno(what_, errno);
  block_.resize(static_cast<std::size_t>(n));
  return n > 0;
}

}  // namespace verbscope
