// Input files: accepted files, and pipes that are rejected instead of waited for.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "common/error.hpp"
#include "common/files.hpp"
#include "common/json.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

TEST(InputFile, RemovesByteOrderMarkAndCarriageReturns) {
  TempDir dir;
  const std::filesystem::path path = dir.path() / "f";
  std::ofstream(path, std::ios::binary) << "\xef\xbb\xbf{\"a\":\r\n1}\r\n";
  EXPECT_EQ(read_text_file(path), "{\"a\":\n1}\n");
  EXPECT_EQ(read_json_file(path), Json::parse("{\"a\": 1}"));
}

// A test that waits for the writer does not end.
TEST(InputFile, RejectsANamedPipe) {
  TempDir dir;
  const std::filesystem::path path = dir.path() / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(message_of<Error>([&] { read_text_file(path); }),
            "cannot read " + path.string() + ": it is not a regular file; use /dev/stdin for standard input");
}

TEST(InputFile, ReadsAnInheritedPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "text", 4), 4);
  close(ends[1]);
  EXPECT_EQ(read_text_file("/dev/fd/" + std::to_string(ends[0])), "text");
  close(ends[0]);
}

}  // namespace
}  // namespace verbscope
