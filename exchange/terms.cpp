#include "exchange/terms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "exchange/message.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxPrintedValue = 120;
constexpr std::size_t kMaxPrintedDifferences = 20;

// Truncates a long value of a peer.
std::string shown(const Json& value) {
  std::string text = printable(dump_json(value));
  if (text.size() > kMaxPrintedValue) text.replace(kMaxPrintedValue, std::string::npos, "...");
  return text;
}

std::string shown_member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? "absent" : shown(*found);
}

class Differences {
 public:
  void compare(std::string_view name, const Json& here, const Json& there) {
    if (here != there) note(name, shown(here), shown(there));
  }
  void note(std::string_view name, const std::string& here, const std::string& there) {
    texts_.push_back(fmt::format("{} (here {}, there {})", printable(name), here, there));
  }
  bool empty() const { return texts_.empty(); }
  std::string text() {
    const std::size_t more = texts_.size() - std::min(texts_.size(), kMaxPrintedDifferences);
    texts_.resize(texts_.size() - more);
    if (more > 0) texts_.push_back(fmt::format("and {} more", more));
    return fmt::format("{}", fmt::join(texts_, ", "));
  }

 private:
  std::vector<std::string> texts_;
};

}  // namespace

Json to_json(const Terms& terms) {
  return Json{{"benchmark", terms.benchmark},
              {"version", terms.version},
              {"commit", terms.commit},
              {"any_build", terms.any_build},
              {"parameters", terms.parameters}};
}

Terms parse_terms(const Json& body) {
  JsonFields fields(body, "terms");
  Terms terms;
  terms.benchmark = fields.require<std::string>("benchmark");
  terms.version = fields.require<std::string>("version");
  terms.commit = fields.require<std::string>("commit");
  terms.any_build = fields.require<bool>("any_build");
  terms.parameters = fields.require<Json>("parameters");
  fields.reject_unknown();
  if (!terms.parameters.is_object()) fields.fail_key("parameters", "expected object");
  return terms;
}

std::string describe_mismatch(const Terms& here, const Terms& there) {
  Differences differences;
  if (!here.any_build && !there.any_build) {
    differences.compare("version", here.version, there.version);
    differences.compare("commit", here.commit, there.commit);
  }
  const bool other_build = !differences.empty();
  differences.compare("benchmark", here.benchmark, there.benchmark);
  for (const auto& [key, value] : here.parameters.items()) {
    const auto found = there.parameters.find(key);
    if (found == there.parameters.end() || *found != value) {
      differences.note(key, shown(value), shown_member(there.parameters, key));
    }
  }
  for (const auto& [key, value] : there.parameters.items()) {
    if (!here.parameters.contains(key)) differences.note(key, "absent", shown(value));
  }
  return differences.text() + (other_build ? "; --any_build runs with another build" : "");
}

}  // namespace verbscope
