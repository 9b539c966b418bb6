#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "common/files.hpp"
#include "common/lines.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"

namespace verbscope {

ResultsWriter::ResultsWriter(std::filesystem::path path, std::string option,
                             const std::vector<std::filesystem::path>& inputs)
    : path_(std::move(path)), option_(std::move(option)) {
  check_output(option_, path_, FileKind::results, inputs);
  open();
}

void ResultsWriter::open() {
  const std::string what = fmt::format("cannot write results to {}", path_.string());
  file_ = Fd(check(what, ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644)));
  if (!is_regular()) return;
  // The lock ends with the last descriptor, however its holder ends. Some file systems have no locks.
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  fail("{}: another program is writing to it", what);
}

// Truncation, renaming and locking concern regular files only, not pipes and devices.
bool ResultsWriter::is_regular() const {
  struct stat status {};
  check(path_.string(), ::fstat(file_.get(), &status));
  return S_ISREG(status.st_mode);
}

off_t ResultsWriter::size() const {
  struct stat status {};
  check(path_.string(), ::fstat(file_.get(), &status));
  return status.st_size;
}

bool ResultsWriter::ends_within_line() const {
  const off_t bytes = size();
  if (bytes == 0) return false;
  char last = 0;
  check(path_.string(), static_cast<int>(::pread(file_.get(), &last, 1, bytes - 1)));
  return last != '\n';
}

void ResultsWriter::follow_name() {
  struct stat ours {
  }, named{};
  check(path_.string(), ::fstat(file_.get(), &ours));
  if (::stat(path_.c_str(), &named) == 0 && named.st_dev == ours.st_dev && named.st_ino == ours.st_ino) return;
  moved_ = true;
  warn(fmt::format("{} was deleted or renamed by another program: further records go to a new file of that name",
                   path_.string()));
  check_output(option_, path_, FileKind::results);
  open();
}

void ResultsWriter::append(const Record& record) {
  const std::string what = fmt::format("cannot write results to {}", path_.string());
  const std::string line = dump_json(to_json(record)) + "\n";
  if (!is_regular()) {
    write_all(file_.get(), line, what);
    return;
  }
  follow_name();
  const off_t before = size();
  try {
    write_all(file_.get(), (ends_within_line() ? "\n" : "") + line, what);
  } catch (const Error&) {
    [[maybe_unused]] const int cut = ::ftruncate(file_.get(), before);  // removes the partial line
    throw;
  }
  if (::fsync(file_.get()) == -1 && errno != EINVAL && errno != EROFS) throw_errno(what, errno);
}

void each_result(const std::filesystem::path& path, const std::function<void(Record record, std::size_t bytes)>& visit,
                 const std::function<void(const std::string& warning)>& warn) {
  for (Lines lines(path, fmt::format("cannot read results from {}", path.string())); lines.next();) {
    const std::string& line = lines.line();
    if (line.empty() && !lines.too_long()) continue;
    const std::string where = fmt::format("{}:{}", path.string(), lines.number());
    std::optional<Record> record;
    try {
      if (lines.too_long()) fail("{}: longer than {} bytes", where, kMaxJsonBytes);
      const Json json = parse_json_text(line, path.string(), lines.number());
      record = record_from_json(json, where);
    } catch (const UnknownSchema&) {
      throw;
    } catch (const Error& error) {
      warn(fmt::format("{} (line ignored)", error.what()));
    }
    if (record) visit(std::move(*record), line.size());
  }
}

Results read_results(const std::filesystem::path& path) {
  Results results;
  each_result(
      path, [&](Record record, std::size_t) { results.records.push_back(std::move(record)); },
      [&](const std::string& warning) { results.warnings.push_back(warning); });
  return results;
}

Results read_results_warning(const std::filesystem::path& path) {
  Results results;
  Warnings warnings(path.string(), "lines are not records");
  each_result(
      path, [&](Record record, std::size_t) { results.records.push_back(std::move(record)); },
      [&](const std::string& warning) { warnings.add(warning); });
  return results;
}

}  // namespace verbscope
