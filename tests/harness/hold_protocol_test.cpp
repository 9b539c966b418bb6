// Messages between the harness and `verbscope hold`: round trips, and rejection of malformed input.
#include "harness/cluster/hold.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

TEST(HoldProtocol, RequestSurvivesARoundTrip) {
  const HoldRequest request{.command = {"/p/send_rate", "a b", "it's\n"},
                            .environment = {"VERBSCOPE_SECRET=x"},
                            .limit = std::chrono::milliseconds(1500),
                            .numa_node = 1};
  const std::string line = to_line(request);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const HoldRequest back = parse_hold_request(line);
  EXPECT_EQ(back.command, request.command);
  EXPECT_EQ(back.environment, request.environment);
  EXPECT_EQ(back.limit, request.limit);
  EXPECT_EQ(back.numa_node, 1);
}

TEST(HoldProtocol, RejectsMalformedRequestsInOneLine) {
  for (const char* text :
       {"", "{}", "null", "GET / HTTP/1.1", R"({"command":[],"environment":[],"limit_ms":1,"numa_node":-1})",
        R"({"command":["x"],"environment":[],"limit_ms":0,"numa_node":-1})"}) {
    EXPECT_FALSE(error_of([&] { parse_hold_request(text); }).empty()) << text;
  }
}

TEST(HoldProtocol, ReadsAnswersInPiecesBetweenOtherLines) {
  const std::string said =
      "Welcome to node7\n" + hold_line("beat", true) + hold_line("out", "listening on ") + "verbscope-hold {broken\n" +
      hold_line("out", "port 7\n") + hold_line("record", "{}\n") +
      hold_line("end", to_json(HoldEnd{.good = false, .text = "exit status 3", .tail = {"no\x01"}}));
  HoldReader reader;
  for (const char c : said) reader.feed(std::string_view(&c, 1));
  EXPECT_EQ(reader.output(), "listening on port 7\n");
  EXPECT_EQ(reader.record(), "{}\n");
  ASSERT_TRUE(reader.end());
  EXPECT_FALSE(reader.end()->good);
  EXPECT_EQ(reader.end()->text, "exit status 3");
  EXPECT_EQ(reader.end()->tail, std::vector<std::string>{"no?"});
}

TEST(HoldProtocol, BoundsTheSizeOfAnswers) {
  HoldReader reader;
  const std::string chunk(1 << 20, 'x');
  for (int i = 0; i < 100; ++i) reader.feed(chunk);
  for (int i = 0; i < 10; ++i) reader.feed("\n" + hold_line("out", std::string(kHeldOutput, 'y')));
  EXPECT_EQ(reader.output().size(), kHeldOutput);
  EXPECT_FALSE(reader.end());
}

}  // namespace
}  // namespace verbscope
