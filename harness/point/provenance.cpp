#include "harness/point/provenance.hpp"

#include <ctime>
#include <fstream>

namespace verbscope {
namespace {

// The words of this process.
Json own_command_line() {
  Json words = Json::array();
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
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

Provenance::Provenance(const Site& site, std::string sweep)
    : site_(site), sweep_(std::move(sweep)), command_line_(own_command_line()) {}

void Provenance::add_to(Record& record, const Point& point, Time started) const {
  record.environment["harness"] = Json{{"launcher", site_.launcher_name()},
                                       {"command_line", command_line_},
                                       {"sweep", sweep_},
                                       {"place", point.place},
                                       {"started", zoned_time(started)},
                                       {"ended", zoned_time(Time::clock::now())}};
  record.environment["hosts"] = site_.host_facts();
}

}  // namespace verbscope
