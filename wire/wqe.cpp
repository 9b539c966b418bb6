#include "wire/wqe.hpp"

#include <fmt/ranges.h>

#include "common/error.hpp"

namespace verbscope {
namespace {

template <class E>
struct Name {
  E value;
  std::string_view text;
};

constexpr std::array kFamilyNames{Name<NicFamily>{NicFamily::mlx4, "mlx4"}, Name<NicFamily>{NicFamily::mlx5, "mlx5"}};
constexpr std::array kTransportNames{Name<Transport>{Transport::rc, "RC"}, Name<Transport>{Transport::uc, "UC"},
                                     Name<Transport>{Transport::ud, "UD"}};
constexpr std::array kVerbNames{
    Name<Verb>{Verb::send, "send"},           Name<Verb>{Verb::write, "write"},
    Name<Verb>{Verb::read, "read"},           Name<Verb>{Verb::compare_swap, "compare_swap"},
    Name<Verb>{Verb::fetch_add, "fetch_add"}, Name<Verb>{Verb::recv, "recv"}};

template <class E, std::size_t N>
std::string_view text_of(const std::array<Name<E>, N>& names, E value) {
  for (const auto& name : names) {
    if (name.value == value) return name.text;
  }
  return "?";
}

template <class E, std::size_t N>
E value_of(const std::array<Name<E>, N>& names, std::string_view what, std::string_view text) {
  std::array<std::string_view, N> allowed;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i].text == text) return names[i].value;
    allowed[i] = names[i].text;
  }
  fail("{} '{}' is unknown: one of {}", what, text, fmt::join(allowed, ", "));
}

}  // namespace

std::string_view to_string(NicFamily family) {
  return text_of(kFamilyNames, family);
}
std::string_view to_string(Transport transport) {
  return text_of(kTransportNames, transport);
}
std::string_view to_string(Verb verb) {
  return text_of(kVerbNames, verb);
}

NicFamily nic_family_from(std::string_view text) {
  return value_of(kFamilyNames, "NIC family", text);
}
Transport transport_from(std::string_view text) {
  return value_of(kTransportNames, "transport", text);
}
Verb verb_from(std::string_view text) {
  return value_of(kVerbNames, "verb", text);
}

}  // namespace verbscope
