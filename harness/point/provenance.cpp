#include "harness/point/provenance.hpp"

#include <ctime>
#include <fstream>

#include "common/cli.hpp"

namespace verbscope {
namespace {

std::vector<std::string> own_command_line() {
  std::vector<std::string> words;
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return without_secrets(std::move(words));
}

}  // namespace

std::string zoned_time(Provenance::Time time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[40] = {};
  const std::size_t length = std::strftime(text, sizeof text, "%FT%T%z", &parts);  // ...+0100
  return std::string(text, length).insert(length - 2, ":");
}

Provenance::Provenance(const Site& site, const Sweep& sweep)
    : site_(site), sweep_(sweep), command_line_(own_command_line()) {}

void Provenance::add_to(Record& record, const Point& point, Time started) const {
  Json harness{{"launcher", site_.launcher_name()}, {"command_line", command_line_}};
  harness.update(point_standing(sweep_, point));
  harness["started"] = zoned_time(started);
  harness["ended"] = zoned_time(Time::clock::now());
  record.environment["harness"] = std::move(harness);
  record.environment["hosts"] = site_.host_facts();
}

}  // namespace verbscope
