// The data that `lookup_rate` measures: a filled structure, and the keys to look up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/json.hpp"
#include "lookups/interleave.hpp"
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

// default_bytes: the default size of a structure, as in the papers. check_bytes throws UsageError that names --size if
// the structure cannot have this size.
std::uint64_t default_bytes(Kind kind);
void check_bytes(Kind kind, std::uint64_t bytes);

// One thread's look-ups and results on a subject that threads share.
class KeyReader {
 public:
  virtual ~KeyReader() = default;
  // Looks up `count` keys, starting with number `first`; all must be below keys(). Does not allocate.
  virtual void look_up(Variant variant, std::size_t batch, std::size_t first, std::size_t count) = 0;
  // same: true if the results of the last call equal those of the other reader; found: the number of keys that were
  // found.
  virtual bool same(const KeyReader& other) const = 0;
  virtual std::size_t found() const = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::size_t keys() const = 0;
  // Expected cache misses of a look-up: the exact average over the keys.
  virtual double accesses() const = 0;
  // Instructions of a look-up without interleaving: a fixed number, plus a number per access. 0 if branches wait for
  // memory.
  virtual double fixed_instructions() const = 0;
  virtual double access_instructions() const = 0;
  // Facts for the record: keys, memory, and properties of the structure.
  virtual Json facts() const = 0;
  virtual std::unique_ptr<KeyReader> reader(std::size_t max_count) const = 0;
};

// Creates and fills a subject. Throws Error if there is not enough memory.
std::unique_ptr<Subject> make_subject(const SubjectChoice& choice);

}  // namespace verbscope::lookups
