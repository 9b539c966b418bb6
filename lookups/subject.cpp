#include "lookups/subject.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "lookups/chain.hpp"
#include "lookups/cuckoo.hpp"
#include "lookups/mica_gets.hpp"
#include "lookups/prefix_table.hpp"

namespace verbscope::lookups {

namespace {

constexpr std::uint64_t kMb = 1 << 20;
// Enough keys that one round reads more lines than caches hold, but few enough that their own memory stays small.
constexpr std::uint64_t kMinKeys = 4096, kMaxKeys = 1 << 23;
constexpr std::size_t kValueBytes = 32;                           // per item of a store
constexpr std::uint64_t kBgpPrefixes = 527'961;                   // in a routing table of 2014, up to 24 bits
constexpr std::uint32_t kHops = 256;                              // number of next hops
constexpr std::uint64_t kKeysPerBucket = 4, kLogPerBucket = 256;  // keys per bucket; bytes of log per bucket of a store

bool found(std::uint32_t) {  // the end of a chain
  return true;
}
bool found(const Cuckoo::Result& result) {
  return result.found;
}
bool found(const MicaGets::Result& result) {
  return result.end == MicaEnd::hit;
}

template <class Structure>
class ReaderOn final : public KeyReader {
 public:
  ReaderOn(const Structure& structure, std::span<const typename Structure::Key> keys, std::size_t max_count)
      : structure_(structure), keys_(keys), results_(max_count) {}

  void look_up(Variant variant, std::size_t batch, std::size_t first, std::size_t count) override {
    HostNode node;
    lookups::look_up(node, structure_, variant, batch, keys_.subspan(first, count), results_.data());
    count_ = count;
  }
  bool same(const KeyReader& other) const override {
    const auto& other_reader = dynamic_cast<const ReaderOn&>(other);
    return count_ == other_reader.count_ &&
           std::equal(results_.begin(), results_.begin() + count_, other_reader.results_.begin());
  }
  std::size_t found() const override {
    const auto hit = [](const auto& result) {
      if constexpr (requires { Structure::kNoHop; }) return result != Structure::kNoHop;
      return lookups::found(result);
    };
    return static_cast<std::size_t>(std::count_if(results_.begin(), results_.begin() + count_, hit));
  }

 private:
  const Structure& structure_;
  std::span<const typename Structure::Key> keys_;
  std::vector<typename Structure::Result> results_;
  std::ptrdiff_t count_ = 0;
};

// Properties of a subject besides its structure.
struct Traits {
  double accesses = 0;
  double fixed_instructions = 0;
  double access_instructions = 0;
  Json facts = Json::object();
};

// For subjects that own only their structure. MicaGets also needs a store.
struct NoStore {};

template <class Structure, class Owned = NoStore>
class SubjectOn final : public Subject {
 public:
  SubjectOn(std::unique_ptr<Owned> owned, std::unique_ptr<Structure> structure,
            std::vector<typename Structure::Key> keys, Traits traits)
      : owned_(std::move(owned)),
        structure_(std::move(structure)),
        keys_(std::move(keys)),
        traits_(std::move(traits)) {}

  std::size_t keys() const override { return keys_.size(); }
  double accesses() const override { return traits_.accesses; }
  double fixed_instructions() const override { return traits_.fixed_instructions; }
  double access_instructions() const override { return traits_.access_instructions; }
  Json facts() const override { return traits_.facts; }
  std::unique_ptr<KeyReader> reader(std::size_t max_count) const override {
    return std::make_unique<ReaderOn<Structure>>(*structure_, keys_, max_count);
  }

 private:
  std::unique_ptr<Owned> owned_;
  std::unique_ptr<Structure> structure_;
  std::vector<typename Structure::Key> keys_;
  Traits traits_;
};

// Number of keys whose look-ups read about twice as many lines as the memory has.
std::uint64_t key_count(std::uint64_t bytes, double accesses) {
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(bytes / 32) / accesses);
  return std::clamp(wanted, kMinKeys, kMaxKeys);
}

std::uint64_t random(std::uint64_t seed, std::uint64_t i) {
  return mix(seed + i * kMixStep);
}

std::unique_ptr<Subject> make_cuckoo(const SubjectChoice& choice) {
  auto table = std::make_unique<Cuckoo>(Bytes(choice.bytes), choice.pages);
  const std::uint64_t filled = kKeysPerBucket * table->buckets();
  const auto key_of = [](std::uint64_t i) {
    return static_cast<Cuckoo::Key>((i + 1) * 0x9e3779b1u);
  };  // odd factor: all keys differ
  for (std::uint64_t i = 0; i < filled; ++i) table->insert(key_of(i), static_cast<std::uint32_t>(i));
  std::vector<Cuckoo::Key> keys(key_count(choice.bytes, 1.5));
  std::uint64_t second = 0;
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    keys[i] = key_of(random(choice.seed, i) % filled);
    if (!table->in_first(keys[i])) ++second;
  }
  Traits traits{.accesses = 1 + static_cast<double>(second) / static_cast<double>(keys.size())};
  traits.facts = {{"buckets", table->buckets()}, {"filled", filled}, {"memory", table->memory().describe()}};
  return std::make_unique<SubjectOn<Cuckoo>>(nullptr, std::move(table), std::move(keys), std::move(traits));
}

std::unique_ptr<Subject> make_chain(const SubjectChoice& choice) {
  auto chain = std::make_unique<Chain>(Bytes(choice.bytes), choice.depth, choice.seed, choice.pages);
  std::vector<Chain::Key> keys(key_count(choice.bytes, choice.depth));
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<Chain::Key>(random(~choice.seed, i) & (chain->places() - 1));
  }
  // Counted in the compiled loops (GCC 12, -O2): key, loop, result; address, load, sum, mask, step.
  Traits traits{.accesses = static_cast<double>(choice.depth), .fixed_instructions = 10, .access_instructions = 6};
  traits.facts = {{"places", chain->places()}, {"memory", chain->memory().describe()}};
  return std::make_unique<SubjectOn<Chain>>(nullptr, std::move(chain), std::move(keys), std::move(traits));
}

template <std::size_t B>
Address<B> random_address(std::uint64_t seed, std::uint64_t i) {
  Address<B> address;
  for (std::size_t byte = 0; byte < B; ++byte) {
    address[byte] = static_cast<std::uint8_t>(random(seed, i * 2 + byte / 8) >> (8 * (byte % 8)));
  }
  return address;
}

template <class Table, std::size_t B>
std::unique_ptr<Subject> make_lpm(std::unique_ptr<Table> table, std::vector<Prefix<B>> prefixes,
                                  std::vector<Address<B>> keys, Traits traits) {
  std::ranges::stable_sort(prefixes, {}, &Prefix<B>::bits);
  std::uint64_t added = 0;
  for (const Prefix<B>& prefix : prefixes) added += table->add(prefix) ? 1 : 0;
  double accesses = 0;
  for (const Address<B>& key : keys) accesses += static_cast<double>(table->accesses(key));
  traits.accesses = accesses / static_cast<double>(keys.size());
  traits.facts = {{"prefixes", added}, {"groups", table->groups_used()}, {"memory", table->memory().describe()}};
  return std::make_unique<SubjectOn<Table>>(nullptr, std::move(table), std::move(keys), std::move(traits));
}

// Random addresses: most end in the first table.
std::unique_ptr<Subject> make_lpm4(const SubjectChoice& choice) {
  const std::uint64_t groups =
      std::min<std::uint64_t>((choice.bytes - Lpm4::kFirstBytes) / Lpm4::kGroupBytes, Lpm4::kGroup);
  std::vector<Prefix<4>> prefixes(kBgpPrefixes + groups);
  for (std::uint64_t i = 0; i < prefixes.size(); ++i) {
    const std::uint64_t number = random(choice.seed, 2 * prefixes.size() + i);
    const auto bits = static_cast<std::uint8_t>(i < groups ? 25 + number % 8 : 16 + number % 9);
    prefixes[i] = {random_address<4>(choice.seed, i), bits, static_cast<std::uint32_t>((number >> 8) % kHops)};
  }
  std::vector<Address<4>> keys(key_count(choice.bytes, 1));
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = random_address<4>(~choice.seed, i);
  // Nearly all end at the first access, which the branch predictor learns.
  return make_lpm(std::make_unique<Lpm4>(groups, choice.pages), std::move(prefixes), std::move(keys),
                  {.fixed_instructions = 16, .access_instructions = 5});
}

// Prefixes of 48 to 64 bits, and addresses that they cover: four to six accesses.
std::unique_ptr<Subject> make_lpm6(const SubjectChoice& choice) {
  const std::uint64_t groups = (choice.bytes - Lpm6::kFirstBytes) / Lpm6::kGroupBytes;
  // A prefix of 48 bits needs 3 groups of its own, one of 49 to 56 bits 4, one of 57 to 64 bits 5: 75 for 17 lengths.
  std::vector<Prefix<16>> prefixes(std::max<std::uint64_t>(1, groups * 17 / 75));
  for (std::uint64_t i = 0; i < prefixes.size(); ++i) {
    const std::uint64_t number = random(choice.seed, 2 * prefixes.size() + i);
    prefixes[i] = {random_address<16>(choice.seed, i), static_cast<std::uint8_t>(48 + number % 17),
                   static_cast<std::uint32_t>((number >> 8) % kHops)};
  }
  std::vector<Address<16>> keys(key_count(choice.bytes, 5));
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    keys[i] = random_address<16>(~choice.seed, i);
    const Prefix<16>& prefix = prefixes[random(~choice.seed, 2 * keys.size() + i) % prefixes.size()];
    std::copy_n(prefix.address.begin(), prefix.bits / 8, keys[i].begin());
    const std::size_t last = prefix.bits / 8;
    const auto mask = static_cast<std::uint8_t>(0xff00u >> (prefix.bits % 8));
    keys[i][last] = static_cast<std::uint8_t>((prefix.address[last] & mask) | (keys[i][last] & ~mask));
  }
  return make_lpm(std::make_unique<Lpm6>(groups, choice.pages), std::move(prefixes), std::move(keys), {});
}

std::unique_ptr<Subject> make_mica(const SubjectChoice& choice) {
  const std::uint64_t buckets = choice.bytes / kLogPerBucket;
  auto store = std::make_unique<MicaStore>(buckets, Bytes(choice.bytes), choice.pages);
  const std::uint64_t filled = kKeysPerBucket * buckets;
  const auto key_of = [](std::uint64_t i) { return KeyHash{mix(i), i + 1}; };
  std::array<std::byte, kValueBytes> value{};
  for (std::uint64_t i = 0; i < filled; ++i) {
    std::memcpy(value.data(), &i, sizeof i);
    store->put(key_of(i), value);
  }
  const MicaCounts& counts = store->counts();
  Traits traits{.accesses = 2};
  traits.facts = {{"buckets", buckets},
                  {"filled", filled},
                  {"index_evictions", counts.index_evictions},
                  {"tag_evictions", counts.tag_evictions},
                  {"log_overwrites", counts.log_overwrites},
                  {"memory", store->log_memory().describe()}};
  std::vector<KeyHash> keys(key_count(choice.bytes, 2));
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = key_of(random(choice.seed, i) % filled);
  auto gets = std::make_unique<MicaGets>(*store);
  return std::make_unique<SubjectOn<MicaGets, MicaStore>>(std::move(store), std::move(gets), std::move(keys),
                                                          std::move(traits));
}

}  // namespace

std::uint64_t default_bytes(Kind kind) {
  switch (kind) {
    case Kind::chain:
    case Kind::lpm6:
      return 1024 * kMb;
    case Kind::lpm4:
      return Lpm4::kFirstBytes + Lpm4::kGroupBytes * Lpm4::kGroup;
    case Kind::cuckoo:
    case Kind::mica:
      break;
  }
  return 512 * kMb;
}

void check_bytes(Kind kind, std::uint64_t bytes) {
  if (kind == Kind::lpm4 || kind == Kind::lpm6) {
    const std::uint64_t min_bytes =
        kind == Kind::lpm4 ? Lpm4::kFirstBytes + Lpm4::kGroupBytes : Lpm6::kFirstBytes + 5 * Lpm6::kGroupBytes;
    if (bytes < min_bytes)
      fail_usage("--size {}: too small for a table of the first 24 bits and a prefix, which need {} bytes", bytes,
                 min_bytes);
  } else if (!std::has_single_bit(bytes) || bytes < 4096) {
    fail_usage("--size {}: expected a power of two, 4096 or more", bytes);
  }
}

std::unique_ptr<Subject> make_subject(const SubjectChoice& choice) {
  switch (choice.kind) {
    case Kind::cuckoo:
      return make_cuckoo(choice);
    case Kind::chain:
      return make_chain(choice);
    case Kind::lpm4:
      return make_lpm4(choice);
    case Kind::lpm6:
      return make_lpm6(choice);
    case Kind::mica:
      break;
  }
  return make_mica(choice);
}

}  // namespace verbscope::lookups
