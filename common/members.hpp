// Sums of structs whose members all have one type and are listed by a static each(self, visit).
#pragma once

#include <array>
#include <cstddef>

namespace verbscope {

// sum += weight * part, member by member. T: the type of the members.
template <class Struct, class T>
void add_weighted(Struct& sum, const Struct& part, T weight) {
  std::array<const T*, sizeof(Struct) / sizeof(T)> parts{};
  std::size_t next = 0;
  Struct::each(part, [&](const char*, const T& value) { parts[next++] = &value; });
  next = 0;
  Struct::each(sum, [&](const char*, T& value) { value += weight * *parts[next++]; });
}

}  // namespace verbscope
