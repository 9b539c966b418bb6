#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include "common/record.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::HasSubstr;

TEST(Environment, HasTheFactsOfThisHostAndBuild) {
  const Json json = make_environment("null", {"prog", "-s", "64"});
  char hostname[256] = {};
  ASSERT_EQ(::gethostname(hostname, sizeof hostname - 1), 0);
  EXPECT_EQ(json["hostname"], hostname);
  EXPECT_EQ(json["cores"], ::sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_EQ(json["fabric"], "null");
  EXPECT_EQ(json["simulated"], false);
  EXPECT_EQ(json["command_line"], (Json{"prog", "-s", "64"}));
  EXPECT_THAT(json["kernel"].get<std::string>(), ::testing::StartsWith("Linux "));
  EXPECT_THAT(json["compiler"].get<std::string>(), ::testing::AnyOf(HasSubstr("GNU"), HasSubstr("Clang")));
  EXPECT_NE(json["git_revision"], "");
}

TEST(Environment, TimeIsTheCurrentUtc) {
  const auto text = make_environment("null", {})["time_utc"].get<std::string>();
  std::tm parts{};
  ASSERT_NE(::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts), nullptr) << text;
  EXPECT_NEAR(static_cast<double>(::timegm(&parts)), static_cast<double>(std::time(nullptr)), 10);
}

TEST(Environment, ChecksTheFabric) {
  EXPECT_EQ(make_environment("sim:cx3", {})["simulated"], true);
  EXPECT_EQ(make_environment("verbs", {})["simulated"], false);
  for (const char* wrong : {"", "sim", "sim:", "Verbs", "mlx5_0"}) {
    EXPECT_THROW(make_environment(wrong, {}), UsageError) << wrong;
  }
}

// common/build_info.cmake, as the build calls it.
class BuildInfoScript : public ::testing::Test {
 protected:
  std::string run(const std::filesystem::path& source, const std::string& version) {
    const std::string command = fmt::format(
        "cmake -D SOURCE_DIR='{}' -D OUTPUT='{}' -D version={} -D build_type=x -D compiler=y -D flags=z -P "
        "'{}/common/build_info.cmake' >/dev/null 2>&1",
        source.string(), (dir / "out.cpp").string(), version, VERBSCOPE_SOURCE_DIR);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return read_file(dir / "out.cpp");
  }
  TempDir dir;
};

TEST_F(BuildInfoScript, WorksInATarballWithoutGit) {
  EXPECT_THAT(run(dir.path(), "1.2.3"), HasSubstr("(1.2.3)\", R\"(unknown)\", R\"(x)\", R\"(y)\", R\"(z)\""));
}

TEST_F(BuildInfoScript, NamesTheRevisionAndChangedFiles) {
  const std::string source = (dir / "src").string();
  const std::string git = "git -C '" + source + "' -c user.name=a -c user.email=b ";
  std::filesystem::create_directory(source);
  write_file(source + "/file", "1");
  if (std::system((git + "init -q && " + git + "add file && " + git + "commit -q -m one").c_str()) != 0) {
    GTEST_SKIP() << "git cannot commit here";
  }
  const std::string clean = run(source, "1");
  EXPECT_THAT(clean, ::testing::ContainsRegex("\"\\([0-9a-f]{12}\\)\""));
  write_file(source + "/file", "2");
  EXPECT_THAT(run(source, "1"), ::testing::ContainsRegex("\"\\([0-9a-f]{12}-dirty\\)\""));
}

TEST_F(BuildInfoScript, WritesItsOutputOnlyAfterAChange) {
  run(dir.path(), "1");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(dir / "out.cpp", long_ago);
  run(dir.path(), "1");
  EXPECT_EQ(std::filesystem::last_write_time(dir / "out.cpp"), long_ago);
  run(dir.path(), "2");
  EXPECT_NE(std::filesystem::last_write_time(dir / "out.cpp"), long_ago);
}

}  // namespace
}  // namespace verbscope
