#include "common/served.hpp"

#include <algorithm>
#include <iostream>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

std::vector<std::string> parse_served_line(const std::string& line) {
  const Json words = Json::parse(line, nullptr, false);
  const bool good = words.is_array() && std::ranges::all_of(words, [](const Json& word) { return word.is_string(); });
  if (!good) fail_usage("{}: expected a JSON array of words in each line, got \"{}\"", kServeOption, line);
  return words.get<std::vector<std::string>>();
}

}  // namespace

std::string served_line(const std::vector<std::string>& arguments) {
  return dump_json(Json(arguments)) + "\n";
}

int run_or_serve(const char* program, int argc, char** argv, const std::function<int(int, char**)>& body) {
  if (argc != 2 || argv[1] != kServeOption) return run_main(program, argc, argv, body);
  return run_main(program, argc, argv, [&](int, char** own) {
    for (std::string line; std::getline(std::cin, line);) {
      std::vector<std::string> words = parse_served_line(line);
      words.insert(words.begin(), own[0]);
      const int code = run_main(program, static_cast<int>(words.size()), c_strings(words).data(), body);
      print_format(stdout, "{}{}\n", kServedEnd, code);
    }
    return 0;
  });
}

}  // namespace verbscope
