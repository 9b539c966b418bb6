#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "common/record.hpp"

namespace verbscope {

ResultsWriter::ResultsWriter(std::filesystem::path path) : path_(std::move(path)) {
  const int fd = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  file_ = Fd(check(fmt::format("cannot write results to {}", path_.string()), fd));
}

// Only a regular file has an earlier end; a pipe or a device has not.
bool ResultsWriter::ends_within_line() const {
  struct stat status {};
  check(path_.string(), ::fstat(file_.get(), &status));
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return false;
  char last = 0;
  check(path_.string(), static_cast<int>(::pread(file_.get(), &last, 1, status.st_size - 1)));
  return last != '\n';
}

void ResultsWriter::append(const Record& record) {
  const std::string what = fmt::format("cannot write results to {}", path_.string());
  const std::string line = (ends_within_line() ? "\n" : "") + dump_json(to_json(record)) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const auto n = ::write(file_.get(), line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(what, errno);
    done += static_cast<std::size_t>(n);
  }
  if (::fsync(file_.get()) == -1 && errno != EINVAL && errno != EROFS) throw_errno(what, errno);  // EINVAL: not a file
}

void each_result(const std::filesystem::path& path, const std::function<void(Record record, std::size_t bytes)>& visit,
                 const std::function<void(const std::string& warning)>& warn) {
  errno = 0;
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) {
    throw_errno(fmt::format("cannot read results from {}", path.string()), errno == 0 ? EISDIR : errno);
  }
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    std::optional<Record> record;
    try {
      const Json json = parse_json_text(line, path.string(), number);
      record = record_from_json(json, fmt::format("{}:{}", path.string(), number));
    } catch (const UnknownSchema&) {
      throw;
    } catch (const Error& error) {
      warn(fmt::format("{} (line ignored)", error.what()));
    }
    if (record) visit(std::move(*record), line.size());
  }
  if (file.bad()) throw_errno(fmt::format("cannot read results from {}", path.string()), errno);
}

Results read_results(const std::filesystem::path& path) {
  Results results;
  each_result(
      path, [&](Record record, std::size_t) { results.records.push_back(std::move(record)); },
      [&](const std::string& warning) { results.warnings.push_back(warning); });
  return results;
}

}  // namespace verbscope
