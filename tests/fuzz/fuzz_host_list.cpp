// Lists of hosts that are built from a grammar, so that what they name is known: prefixes, ranges with leading zeros
// and steps, suffixes, with commas between them. The expansion is held against one by recursion.
#include <fmt/format.h>

#include <vector>

#include "harness/cluster/host_range.hpp"
#include "harness/cluster/hosts.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

constexpr std::size_t kEnough = 2 * verbscope::kMaxHosts;

class Grammar {
 public:
  Grammar(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  // A list; names() are those that it means, or more than there may be.
  std::string list() {
    std::string text = pattern();
    while (at_ < size_ && byte() % 4 != 0) text += "," + pattern();
    return text;
  }
  const std::vector<std::string>& names() const { return names_; }
  std::size_t most_groups() const { return most_groups_; }

 private:
  std::uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }

  std::string word() {
    std::string out(1, static_cast<char>('a' + byte() % 26));
    for (int n = byte() % 4; n > 0; --n) out += "abz019-."[byte() % 8];
    return out + "x";  // so that no digit precedes a range
  }

  // Its text; `numbers` becomes what it stands for.
  std::string group(std::vector<std::string>& numbers) {
    std::string text = "[";
    do {
      const unsigned width = byte() % 5, first = byte() * (byte() % 4 == 0 ? 1000u : 1u), step = 1 + byte() % 7;
      const unsigned last = first + (byte() % 3 == 0 ? 16u : 1u) * byte();
      const std::string low = fmt::format("{:0{}}", first, width);
      const std::string separator = text.size() > 1 ? "," : "";
      if (byte() % 3 == 0) {
        text += separator + low;
        numbers.push_back(low);
        continue;
      }
      text += fmt::format("{}{}-{:0{}}", separator, low, last, width);
      if (step > 1) text += fmt::format("{}{}", byte() % 2 == 0 ? '/' : ':', step);
      for (unsigned n = first; n <= last && numbers.size() < kEnough; n += step) {
        numbers.push_back(fmt::format("{:0{}}", n, low.size()));
      }
    } while (at_ < size_ && byte() % 4 == 0);
    return text + "]";
  }

  std::string pattern() {
    std::vector<std::string> words{word()};
    std::vector<std::vector<std::string>> groups;
    std::string text = words.front();
    for (int n = byte() % 4 == 0 ? byte() % 12 : byte() % 3; n > 0; --n) {
      text += group(groups.emplace_back());
      text += words.emplace_back(word());
    }
    most_groups_ = std::max(most_groups_, groups.size());
    expand(words.front(), words, groups, 0);
    return text;
  }

  void expand(const std::string& before, const std::vector<std::string>& words,
              const std::vector<std::vector<std::string>>& groups, std::size_t i) {
    if (names_.size() >= kEnough) return;
    if (i == groups.size()) {
      names_.push_back(before);
      return;
    }
    for (const std::string& number : groups[i]) expand(before + number + words[i + 1], words, groups, i + 1);
  }

  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
  std::vector<std::string> names_;
  std::size_t most_groups_ = 0;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Grammar grammar(data, size);
  const std::string list = grammar.list();
  constexpr std::size_t kMaxGroups = 8;  // the documented number of brackets in a name
  const bool possible = grammar.names().size() <= verbscope::kMaxHosts && grammar.most_groups() <= kMaxGroups;
  verbscope::fuzz::expect_value_or_error([&] {
    std::vector<std::string> names;
    try {
      for (const auto& host : verbscope::slurm_hosts(list.c_str())) names.push_back(host.name);
    } catch (const verbscope::Error& error) {
      if (possible && std::string(error.what()).find("twice") == std::string::npos) {
        verbscope::fuzz::report("a list that is right is taken", list + ": " + error.what());
      }
      throw;
    }
    if (!possible) verbscope::fuzz::report("too many hosts are refused", list);
    if (names != grammar.names()) verbscope::fuzz::report("a list means what it says", list);
  });
  return 0;
}
