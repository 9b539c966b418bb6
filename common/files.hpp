// Input and output files of commands. Existing content of an output stays until the new text is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"
#include "common/scratch.hpp"

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

// The kinds of files that commands write. A file of another kind is never overwritten. The first bytes of a file
// identify its kind.
enum class FileKind { results, report_page, svg, pdf, figure_data, gnuplot_script, validation_page, exported, history };

// First bytes of the files that `verbscope plot` writes beside a figure.
inline constexpr std::string_view kFigureDataHead = "curve,benchmark,fabric,simulated,";
inline constexpr std::string_view kGnuplotScriptHead = "# A figure of `verbscope plot`";

// Throws a UsageError that begins with `option` if `path` cannot be an output: if it is one of `inputs` (under any
// name), the target of standard output, a folder, or a file of another kind. Accepts empty and missing files, pipes and
// devices.
void check_output(const std::string& option, const std::filesystem::path& path, FileKind kind,
                  const std::vector<std::filesystem::path>& inputs = {});

// Writes a temporary file in the same folder and renames it, so that a reader sees either the old or the new text, and
// a full disk leaves the old one. Pipes and devices are written directly. A symbolic link stays a link. All errors are
// "cannot write PATH: reason".
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);

  // For another program that writes the text instead of write().
  const std::filesystem::path& temporary() const { return temporary_; }
  void write(std::string_view text);
  // Renames the file to its final name. Without this call nothing changes.
  void commit();

 private:
  std::filesystem::path path_, target_, temporary_;
  Fd file_;
  std::unique_ptr<Scratch> scratch_;  // empty if the text is written directly
};

// Replaces the content of a file through OutputFile.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace verbscope
