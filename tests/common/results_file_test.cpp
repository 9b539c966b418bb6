#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "common/record.hpp"
#include "tests/common/sample_records.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A record that differs from others by its number.
Record numbered(int number) {
  Record record = sample_record();
  record.config["number"] = number;
  return record;
}

std::vector<int> numbers_in(const Results& results) {
  std::vector<int> numbers;
  for (const auto& record : results.records) numbers.push_back(record.config["number"].get<int>());
  return numbers;
}

void write_numbered(const std::filesystem::path& path, std::initializer_list<int> numbers) {
  ResultsWriter writer(path);
  for (const int number : numbers) writer.append(numbered(number));
}

TEST(ResultsFile, KeepsOneRecordPerLineAcrossWriters) {
  TempDir dir;
  write_numbered(dir / "r.jsonl", {1, 2});
  write_numbered(dir / "r.jsonl", {3});
  const std::string text = read_file(dir / "r.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  const Results results = read_results(dir / "r.jsonl");
  EXPECT_THAT(numbers_in(results), ElementsAre(1, 2, 3));
  EXPECT_THAT(results.warnings, ElementsAre());
}

TEST(ResultsFile, TruncatedLastLineIsSkippedAndTheNextStartsANewLine) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  write_numbered(path, {1, 2});
  const std::string whole = read_file(path);
  const std::size_t second = whole.find('\n') + 1;
  for (std::size_t length = second + 1; length < whole.size() - 1; length += 13) {
    write_file(path, whole.substr(0, length));
    const Results cut = read_results(path);
    ASSERT_THAT(numbers_in(cut), ElementsAre(1));
    ASSERT_THAT(cut.warnings, ElementsAre(StartsWith(path.string() + ":2: ")));
    write_numbered(path, {3, 4});
    const Results continued = read_results(path);
    ASSERT_THAT(numbers_in(continued), ElementsAre(1, 3, 4));
    ASSERT_EQ(continued.warnings.size(), 1u);
  }
}

TEST(ResultsFile, MissingLastNewlineLosesNothing) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  write_numbered(path, {1});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(numbers_in(read_results(path)), ElementsAre(1));
  write_numbered(path, {2});
  EXPECT_THAT(numbers_in(read_results(path)), ElementsAre(1, 2));
  EXPECT_THAT(read_results(path).warnings, ElementsAre());
}

TEST(ResultsFile, TruncationWhileAWriterIsOpenIsNotMerged) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  ResultsWriter writer(path);
  writer.append(numbered(1));
  std::ofstream(path, std::ios::app) << "{\"half";
  writer.append(numbered(2));
  EXPECT_THAT(numbers_in(read_results(path)), ElementsAre(1, 2));
}

TEST(ResultsFile, WarnsAboutEachInvalidLine) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  write_file(path, "not json\n" + dump_json(to_json(numbered(7))) + "\n\n{\"schema\": \"verbscope.record/1\"}\n[1]\n");
  const Results results = read_results(path);
  EXPECT_THAT(numbers_in(results), ElementsAre(7));
  EXPECT_THAT(results.warnings,
              ElementsAre(StartsWith(path.string() + ":1: "), HasSubstr(":4: key \"benchmark\" is missing"),
                          HasSubstr(":5: expected object, got array")));
}

TEST(ResultsFile, AnotherSchemaVersionStopsTheReader) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  write_file(path, dump_json(to_json(numbered(1))) + "\n{\"schema\": \"verbscope.record/9\"}\n");
  EXPECT_THAT(message_of<UnknownSchema>([&] { read_results(path); }),
              HasSubstr(":2: record schema \"verbscope.record/9\" is not known"));
}

TEST(ResultsFile, UnusableFileIsOneLine) {
  TempDir dir;
  const auto missing = dir / "no/r.jsonl";
  EXPECT_EQ(message_of<Error>([&] { ResultsWriter writer(missing); }),
            "cannot write results to " + missing.string() + ": No such file or directory");
  EXPECT_EQ(message_of<UsageError>([&] { ResultsWriter writer(dir.path()); }),
            "--out " + dir.path().string() + ": it is a folder");
  EXPECT_EQ(message_of<Error>([&] { ResultsWriter("/dev/full").append(sample_record()); }),
            "cannot write results to /dev/full: No space left on device");
  EXPECT_EQ(message_of<Error>([&] { read_results(missing); }),
            "cannot read results from " + missing.string() + ": No such file or directory");
  EXPECT_EQ(message_of<Error>([&] { read_results(dir.path()); }),
            "cannot read results from " + dir.path().string() + ": it is a folder");
}

TEST(ResultsFile, RejectsASecondWriter) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  {
    ResultsWriter first(path);
    EXPECT_EQ(message_of<Error>([&] { ResultsWriter second(path); }),
              "cannot write results to " + path.string() + ": another program is writing to it");
    first.append(numbered(1));
  }
  write_numbered(path, {2});
  EXPECT_THAT(numbers_in(read_results(path)), ElementsAre(1, 2));
}

TEST(ResultsFileDeathTest, LockEndsWithItsHolder) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  EXPECT_EXIT(
      {
        ResultsWriter writer(path);
        writer.append(numbered(1));
        std::raise(SIGKILL);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  write_numbered(path, {2});
  EXPECT_THAT(numbers_in(read_results(path)), ElementsAre(1, 2));
}

TEST(ResultsFile, RenamedOrDeletedFileIsReplacedWithAWarning) {
  for (const bool renamed : {false, true}) {
    TempDir dir;
    const auto path = dir / "r.jsonl";
    ResultsWriter writer(path);
    writer.append(numbered(1));
    EXPECT_FALSE(writer.moved());
    if (renamed) {
      std::filesystem::rename(path, dir / "old.jsonl");
    } else {
      std::filesystem::remove(path);
    }
    ::testing::internal::CaptureStderr();
    writer.append(numbered(2));
    writer.append(numbered(3));
    const std::string output = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(output, HasSubstr("was deleted or renamed by another program"));
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1);
    EXPECT_TRUE(writer.moved());
    EXPECT_THAT(numbers_in(read_results(path)), ElementsAre(2, 3));
    if (renamed) {
      EXPECT_THAT(numbers_in(read_results(dir / "old.jsonl")), ElementsAre(1));
    }
    EXPECT_THROW(ResultsWriter second(path), Error);  // the new file has the lock
  }
}

// A limit on the size of files stands for a full disk: both end a write half-way.
TEST(ResultsFileDeathTest, PartialRecordIsRemoved) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  write_numbered(path, {1});
  const std::string before = read_file(path);
  const auto append_too_much = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{before.size() + 100, before.size() + 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      ResultsWriter(path).append(numbered(2));
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::exit(1);
    }
  };
  EXPECT_EXIT(append_too_much(), ::testing::ExitedWithCode(1), "cannot write results to .*: File too large");
  EXPECT_EQ(read_file(path), before);
}

TEST(ResultsFile, SkipsOnlyATooLongLine) {
  TempDir dir;
  const auto path = dir / "r.jsonl";
  const auto line = [](int number) { return dump_json(to_json(numbered(number))) + "\n"; };
  write_file(path, line(1) + std::string(kMaxJsonBytes + 1, 'x') + "\n" + std::string(10, '\0') + "\n" + line(2));
  const Results results = read_results(path);
  EXPECT_THAT(numbers_in(results), ElementsAre(1, 2));
  ASSERT_EQ(results.warnings.size(), 2u);
  EXPECT_THAT(results.warnings[0], HasSubstr(":2: longer than 16777216 bytes"));
  EXPECT_THAT(results.warnings[1], HasSubstr(":3: "));
}

TEST(ResultsFile, RejectsAnEndlessLine) {
  TempDir dir;
  const std::filesystem::path path = dir.path() / "zeros";
  std::ofstream(path) << '\0';
  std::filesystem::resize_file(path, (std::uintmax_t{1} << 30) + 2);  // without blocks on the disk
  EXPECT_THAT(message_of<Error>([&] { read_results(path); }), HasSubstr("zeros:1: the line is longer than"));
}

TEST(ResultsFile, WritesPipesAndDevices) {
  EXPECT_NO_THROW(ResultsWriter("/dev/null").append(sample_record()));
}

}  // namespace
}  // namespace verbscope
