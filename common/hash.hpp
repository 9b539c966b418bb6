// Hash functions with equal results on all machines: FNV-1a of texts, and SplitMix64 of numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace verbscope {

// 64-bit FNV-1a.
constexpr std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): its finaliser as a hash, and its stream of numbers.
inline constexpr std::uint64_t kMixStep = 0x9e3779b97f4a7c15u;

// Every output bit depends on every input bit. The stream of a seed is mix(seed), mix(seed + kMixStep), ...
constexpr std::uint64_t mix(std::uint64_t x) {
  x += kMixStep;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace verbscope
