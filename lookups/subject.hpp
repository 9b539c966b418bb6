// What `lookup_rate` measures: a structure that is filled, and the keys that are looked up in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/json.hpp"
#include "lookups/variant.hpp"
#include "machine/memory.hpp"

namespace verbscope::lookups {

enum class Kind { cuckoo, chain, lpm4, lpm6, mica };

struct SubjectChoice {
  Kind kind = Kind::cuckoo;
  std::uint64_t bytes = 0;
  std::uint32_t depth = 1;  // of a chain
  std::uint64_t seed = 1;
  PageSize pages = PageSize::transparent;
};

// The bytes that a structure of the kind has by default: as in the papers. Throws UsageError naming --size when it
// cannot have `bytes`.
std::uint64_t default_bytes(Kind kind);
void check_bytes(Kind kind, std::uint64_t bytes);

// A thread's own results, over a subject that threads share.
class Walker {
 public:
  virtual ~Walker() = default;
  // Looks up `count` keys from number `first` on, which are there (subject's keys()); no allocation.
  virtual void look_up(Variant variant, std::size_t batch, std::size_t first, std::size_t count) = 0;
  // Of the results of the last call: whether they are those of another walker's last call; how many found something.
  virtual bool same(const Walker& other) const = 0;
  virtual std::size_t found() const = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::size_t keys() const = 0;
  // Accesses of a look-up that are expected to miss the cache, on average over the keys; exact.
  virtual double accesses() const = 0;
  // Instructions of a look-up one by one: those that it has in any case, and those of each access; 0 where branches
  // wait for memory.
  virtual double fixed_instructions() const = 0;
  virtual double access_instructions() const = 0;
  // Keys, memory, and what else there is to say of it.
  virtual Json facts() const = 0;
  virtual std::unique_ptr<Walker> walker(std::size_t most) const = 0;
};

// Makes and fills it. Throws Error when there is not enough memory.
std::unique_ptr<Subject> make_subject(const SubjectChoice& choice);

}  // namespace verbscope::lookups
