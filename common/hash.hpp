// A checksum of a text that is equal on all machines: 64-bit FNV-1a.
#pragma once

#include <cstdint>
#include <string_view>

namespace verbscope {

constexpr std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace verbscope
