#include "systems/ordered/caller.hpp"

#include <algorithm>
#include <utility>

namespace verbscope::ordered {

namespace {

constexpr std::uint64_t kKindSeed = 0x6b696e64, kPlaceSeed = 0x706c6163;

}  // namespace

Caller::Caller(std::shared_ptr<const KeyTable> keys, const Mix& mix, const Place& place, std::uint64_t seed)
    : keys_(std::move(keys)),
      mix_(mix),
      own_place_(place),
      kinds_(100, true, verbscope::mix(seed ^ kKindSeed) + place.rank, 0),
      places_(keys_->size(), true, verbscope::mix(seed ^ kPlaceSeed) + place.rank, 0) {
  if (mix.puts > 0) own_.resize((keys_->size() - place.rank + place.writers - 1) / place.writers);
}

// A PUT of a key that waits for its last PUT becomes a GET: the order of two PUTs on their way is not known.
std::uint8_t Caller::draw(Asked& asked) {
  const std::uint64_t kind = kinds_.next();
  asked.place = places_.next();
  if (kind < mix_.scans) return kScan;
  if (kind >= mix_.scans + mix_.puts) return kGet;
  const std::uint64_t own = std::min<std::uint64_t>(asked.place / own_place_.writers, own_.size() - 1);
  asked.place = own * own_place_.writers + own_place_.rank;
  return own_[own].sent == own_[own].stored ? kPut : kGet;
}

Request Caller::ask(std::uint64_t tag, Asked& asked) {
  asked.kind = draw(asked);
  Request request{.tag = tag, .key = keys_->key(asked.place)};
  if (asked.kind == kPut) {
    request.value = value_of(request.key, ++own_[asked.place / own_place_.writers].sent);
  } else {
    request.length = asked.kind == kScan ? mix_.scan_length : 1;
    asked.least = least_versions(asked.place, keys_->found(asked.place, request.length));
  }
  return request;
}

bool Caller::good(const Asked& asked, std::uint64_t tag, const Response& response) {
  const std::uint64_t count = keys_->found(asked.place, asked.kind == kScan ? mix_.scan_length : 1);
  if (response.tag != (tag | kResponseMark) || response.count != count ||
      response.keys != keys_->sum(asked.place, count)) {
    return false;
  }
  const std::uint64_t versions = keys_->versions(asked.place, count, response.values);
  if (asked.kind == kPut) {
    Versions& own = own_[asked.place / own_place_.writers];
    own.stored = own.sent;
    return versions == own.sent;
  }
  return asked.least <= versions && versions <= most_versions(asked.place, count);
}

// What a request finds at least: the PUTs of this thread that are answered.
std::uint64_t Caller::least_versions(std::uint64_t place, std::uint64_t count) const {
  if (own_.empty()) return 0;
  const auto [writers, rank] = own_place_;
  std::uint64_t sum = 0;
  for (std::uint64_t own = (place + writers - 1 - rank) / writers; own * writers + rank < place + count; ++own) {
    sum += own_[own].stored;
  }
  return sum;
}

// And at most. This thread knows only its own versions.
std::uint64_t Caller::most_versions(std::uint64_t place, std::uint64_t count) const {
  if (own_.empty()) return 0;
  const auto [writers, rank] = own_place_;
  return count == 1 && place % writers == rank ? own_[place / writers].sent : count * kVersions;
}

}  // namespace verbscope::ordered
