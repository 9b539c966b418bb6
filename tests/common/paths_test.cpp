#include "common/paths.hpp"

#include <gmock/gmock.h>

#include "common/error.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A configs folder of its own, chosen by the environment variable for the length of a test.
class Paths : public ::testing::Test {
 protected:
  Paths() {
    std::filesystem::create_directories(dir / "clusters");
    write_file(dir / "clusters/mine.json", "{}");
    write_file(dir / "clusters/notes.txt", "");
    ::setenv("VERBSCOPE_CONFIGS", dir.path().c_str(), 1);
  }
  ~Paths() override { ::unsetenv("VERBSCOPE_CONFIGS"); }
  TempDir dir;
};

TEST_F(Paths, ChosenFolderComesFirst) {
  EXPECT_EQ(find_config("clusters", "mine"), std::filesystem::canonical(dir / "clusters/mine.json"));
  EXPECT_EQ(config_roots().front(), std::filesystem::canonical(dir.path()));
}

TEST_F(Paths, SourceFoldersRemainUsable) {
  EXPECT_EQ(find_config("clusters", "cib"),
            std::filesystem::canonical(VERBSCOPE_SOURCE_DIR "/configs/clusters/cib.json"));
  EXPECT_THAT(list_configs("clusters"), Contains("cib"));
  EXPECT_THAT(list_configs("clusters"), Contains("mine"));
  EXPECT_THAT(list_configs("clusters"), ::testing::Not(Contains("notes")));
}

TEST_F(Paths, NamesMayContainASubfolder) {
  std::filesystem::create_directories(dir / "sweeps/paper");
  write_file(dir / "sweeps/paper/rates.json", "{}");
  EXPECT_EQ(find_config("sweeps", "paper/rates"), std::filesystem::canonical(dir / "sweeps/paper/rates.json"));
  EXPECT_EQ(find_config("sweeps/paper", "rates"), find_config("sweeps", "paper/rates"));
  EXPECT_THAT(list_configs("sweeps"), Contains("paper/rates"));
  EXPECT_EQ(find_config("sweeps", "paper/other"), "paper/other");
}

TEST_F(Paths, PathIsUsedUnchanged) {
  EXPECT_EQ(find_config("clusters", "./x"), "./x");
  EXPECT_EQ(find_config("clusters", "x.json"), "x.json");
}

TEST_F(Paths, UnknownNameListsTheKnownNames) {
  const std::string error = message_of<UsageError>([] { find_config("clusters", "nope"); });
  EXPECT_THAT(error, ::testing::StartsWith("unknown cluster \"nope\"; known: "));
  EXPECT_THAT(error, HasSubstr("cib"));
  EXPECT_THAT(error, HasSubstr("mine"));
}

TEST_F(Paths, RejectsAMissingChosenFolder) {
  ::setenv("VERBSCOPE_CONFIGS", "/no/such/folder", 1);
  EXPECT_EQ(message_of<Error>([] { config_roots(); }), "VERBSCOPE_CONFIGS: \"/no/such/folder\" is not a folder");
}

}  // namespace
}  // namespace verbscope
