#include "common/fd.hpp"

#include <unistd.h>

namespace verbscope {

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace verbscope
