// Files that a command is told to write. What was there before stays until the new text is whole, and what is not of
// the same kind stays for good.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"
#include "common/scratch.hpp"

namespace verbscope {

// The kinds of files that commands write; a file tells its kind by its first bytes.
enum class FileKind { results, report_page, svg, pdf, figure_data, gnuplot_script, validation_page, exported };

// The beginnings of the files that `verbscope plot` writes beside a figure.
inline constexpr std::string_view kFigureDataHead = "curve,benchmark,fabric,simulated,";
inline constexpr std::string_view kGnuplotScriptHead = "# A figure of `verbscope plot`";

// Throws a UsageError that begins with `option` when `path` cannot be an output: it is one of `inputs`, under whatever
// name, or the file that standard output goes to, a folder, or a file of another kind. Files that are empty or not
// there will do, and pipes and devices.
void check_output(const std::string& option, const std::filesystem::path& path, FileKind kind,
                  const std::vector<std::filesystem::path>& inputs = {});

// Writes a file aside, in the same folder, and puts it in its place in one step: a reader sees the old text or the new,
// and a full disk leaves the old. Where the path is a pipe or a device, it is written directly; a symbolic link stays
// one. All failures are "cannot write PATH: reason".
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);

  // Where another program is to write the text, instead of write().
  const std::filesystem::path& aside() const { return aside_; }
  void write(std::string_view text);
  // Puts it in its place. Without it nothing changes.
  void commit();

 private:
  std::filesystem::path path_, target_, aside_;
  Fd file_;
  std::unique_ptr<Scratch> scratch_;  // none where the text is written directly
};

// Replaces the file by the text as above.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace verbscope
