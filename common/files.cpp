#include "common/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>

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
    fail("{}: it is not a regular file; use /dev/stdin for standard input", what);
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

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHead = 64 << 10;  // first bytes that are read to identify a file

std::string head_of(const std::string& option, const fs::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string head(kHead, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!file.is_open() || file.bad())
    fail("{} {}: cannot read the existing file: {}", option, path.string(), errno_text(errno));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

bool has_kind(std::string_view head, FileKind kind) {
  const auto has = [head](std::string_view text) { return head.find(text) != head.npos; };
  constexpr std::string_view kRecord = R"({"schema":"verbscope.record/)";
  switch (kind) {
    case FileKind::results:  // also a file that ends within its first line
      return has(R"("verbscope.record/)") || kRecord.starts_with(head);
    case FileKind::report_page:
      return has("<title>verbscope report</title>");
    case FileKind::svg:
      return has("<svg");
    case FileKind::pdf:
      return head.starts_with("%PDF");
    case FileKind::figure_data:
      return head.starts_with(kFigureDataHead);
    case FileKind::gnuplot_script:
      return head.starts_with(kGnuplotScriptHead);
    case FileKind::validation_page:
      return head.starts_with("# Simulated figures against");
    case FileKind::exported:  // any of the four views
      return head.starts_with("id,benchmark,fabric,") || head.starts_with(R"({"id":")") ||
             head.starts_with("{\n\"test_info\"") || (head.starts_with("-----") && has("#bytes"));
    case FileKind::history:
      return head.starts_with(R"({"client":)");
  }
  return false;
}

const char* kind_text(FileKind kind) {
  switch (kind) {
    case FileKind::results:
      return "a results file";
    case FileKind::report_page:
      return "a page of `verbscope report`";
    case FileKind::svg:
      return "an SVG figure";
    case FileKind::pdf:
      return "a PDF figure";
    case FileKind::figure_data:
      return "the data of a figure of `verbscope plot`";
    case FileKind::gnuplot_script:
      return "a script of `verbscope plot`";
    case FileKind::validation_page:
      return "a page of `verbscope validate`";
    case FileKind::exported:
      return "an output of `verbscope export`";
    case FileKind::history:
      return "a history of clients";
  }
  return "";
}

bool is_standard_output(const fs::path& path) {
  struct stat file {
  }, out{};
  return ::stat(path.c_str(), &file) == 0 && ::fstat(STDOUT_FILENO, &out) == 0 && file.st_dev == out.st_dev &&
         file.st_ino == out.st_ino;
}

[[noreturn]] void fail_writing(const fs::path& path, int error_number) {
  throw_errno(fmt::format("cannot write {}", path.string()), error_number);
}

}  // namespace

void check_output(const std::string& option, const fs::path& path, FileKind kind, const std::vector<fs::path>& inputs) {
  const std::string what = fmt::format("{} {}", option, path.string());
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (fs::is_directory(status)) fail_usage("{}: it is a folder", what);
  if (!fs::is_regular_file(status)) return;  // missing, a pipe, or a device
  const auto is_it = [&](const fs::path& input) { return fs::equivalent(path, input, none); };
  if (std::ranges::any_of(inputs, is_it)) fail_usage("{}: it is also an input file and would be overwritten", what);
  if (is_standard_output(path)) fail_usage("{}: standard output is redirected to the same file", what);
  if (!has_kind(head_of(option, path), kind) && fs::file_size(path, none) > 0) {
    fail_usage("{}: the existing file is not {} and would be overwritten; choose another name or remove it", what,
               kind_text(kind));
  }
}

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  std::error_code none;
  target_ = fs::canonical(path, none);  // a symbolic link stays; its target is replaced
  if (none) target_ = fs::absolute(path);
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail_writing(path, EISDIR);
  if (exists && !S_ISREG(old.st_mode)) {
    temporary_ = target_;
    file_ = Fd(::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC));
    if (file_.get() < 0) fail_writing(path, errno);
    return;
  }
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail_writing(path, errno);  // rename does not check this
  // An unused name. O_EXCL ensures that the file is ours before anything may remove it.
  std::random_device random;
  do {
    temporary_ = target_.parent_path() / fmt::format(".verbscope-{:08x}{:08x}.part", random(), random());
    file_ = Fd(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (file_.get() < 0 && errno == EEXIST);
  if (file_.get() < 0) fail_writing(path, errno);
  scratch_ = std::make_unique<Scratch>(temporary_);
  if (exists && ::fchmod(file_.get(), old.st_mode & 07777) != 0) fail_writing(path, errno);
}

void OutputFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file_.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_writing(path_, errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void OutputFile::commit() {
  if (!scratch_) return;
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) fail_writing(path_, errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_writing(path_, errno);
  scratch_->keep();
}

void replace_file(const fs::path& path, std::string_view text) {
  OutputFile out(path);
  out.write(text);
  out.commit();
}

}  // namespace verbscope
