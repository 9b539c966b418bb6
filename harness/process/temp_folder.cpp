#include "harness/process/temp_folder.hpp"

#include <fcntl.h>

#include "common/fd.hpp"
#include "common/terminal.hpp"

namespace verbscope {

std::string TempFolder::write(const std::string& name, std::string_view text) const {
  std::string path = file(name);
  const std::string what = "cannot write " + path;
  const Fd out(check(what, ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)));
  write_all(out.get(), text, what);
  return path;
}

}  // namespace verbscope
