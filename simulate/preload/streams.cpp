// The C library's streams read by its own calls, which cannot be replaced. So these functions wait until the stream's
// file descriptor has something, before the library reads: a stream of a pipe or socket waits in virtual time for the
// first part of what is asked for. If the rest takes longer, the thread blocks in real time.
#include <stdio.h>

#include "simulate/preload/looks.hpp"
#include "simulate/preload/real.hpp"

EXPORTED char* __fgets_chk(char*, std::size_t, int, FILE*);
EXPORTED std::size_t __fread_chk(void*, std::size_t, std::size_t, std::size_t, FILE*);

namespace verbscope::simulate {
namespace {

void await_input(FILE* stream) {
  if (stream->_IO_read_ptr < stream->_IO_read_end) return;  // in its buffer
  const int fd = fileno(stream);
  if (fd < 0 || !waits_for_others(fd)) return;
  Look look;
  while (!await_ready(look, fd, POLLIN) && errno == EINTR) {
  }
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED char* fgets(char* to, int room, FILE* stream) {
  await_input(stream);
  return REAL(fgets)(to, room, stream);
}

EXPORTED char* __fgets_chk(char* to, std::size_t bytes, int room, FILE* stream) {
  await_input(stream);
  return REAL(__fgets_chk)(to, bytes, room, stream);
}

EXPORTED std::size_t fread(void* to, std::size_t size, std::size_t count, FILE* stream) {
  await_input(stream);
  return REAL(fread)(to, size, count, stream);
}

EXPORTED std::size_t __fread_chk(void* to, std::size_t bytes, std::size_t size, std::size_t count, FILE* stream) {
  await_input(stream);
  return REAL(__fread_chk)(to, bytes, size, count, stream);
}

EXPORTED ssize_t getdelim(char** line, std::size_t* room, int end, FILE* stream) {
  await_input(stream);
  return REAL(getdelim)(line, room, end, stream);
}

EXPORTED ssize_t __getdelim(char** line, std::size_t* room, int end, FILE* stream) {
  return getdelim(line, room, end, stream);
}

EXPORTED ssize_t getline(char** line, std::size_t* room, FILE* stream) {
  return getdelim(line, room, '\n', stream);
}

#undef getc
EXPORTED int fgetc(FILE* stream) {
  await_input(stream);
  return REAL(fgetc)(stream);
}

EXPORTED int getc(FILE* stream) {
  return fgetc(stream);
}
