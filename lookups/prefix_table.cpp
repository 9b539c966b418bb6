#include "lookups/prefix_table.hpp"

#include "common/error.hpp"

namespace verbscope::lookups {

template <std::size_t AddressBytes, class Entry>
PrefixTable<AddressBytes, Entry>::PrefixTable(std::size_t groups, PageSize pages)
    : memory_(Bytes(kFirstBytes + groups * kGroupBytes), pages),
      entries_(reinterpret_cast<Entry*>(memory_.data())),
      groups_(groups) {
  if (groups > kGroup) fail("a prefix table of {} groups: an entry can name {}", groups, kGroup);
}

// The number of groups that must be added for a prefix.
template <std::size_t AddressBytes, class Entry>
std::size_t PrefixTable<AddressBytes, Entry>::new_groups(const Prefix<AddressBytes>& prefix) const {
  const Entry* place = first(prefix.address);
  for (std::size_t covered = 24; covered < prefix.bits; covered += 8) {
    if (!is_group(*place)) return (prefix.bits - covered + 7) / 8;
    place = next(*place, prefix.address, covered / 8);
  }
  return 0;
}

template <std::size_t AddressBytes, class Entry>
bool PrefixTable<AddressBytes, Entry>::add(const Prefix<AddressBytes>& prefix) {
  if (prefix.bits < longest_ || prefix.bits > 8 * AddressBytes || prefix.next_hop >= kHops) {
    fail("a prefix of {} bits for next hop {}: from {} (the one before) to {} bits, next hops below {}", prefix.bits,
         prefix.next_hop, longest_, 8 * AddressBytes, kHops);
  }
  if (new_groups(prefix) > groups_ - used_) return false;
  longest_ = prefix.bits;
  Entry* table = entries_;
  std::size_t index = first_index(prefix.address), covered = 24;
  for (; covered < prefix.bits; covered += 8) {
    if (!is_group(table[index])) {
      std::fill_n(group(used_), kGroupEntries, table[index]);
      table[index] = static_cast<Entry>(kGroup | used_++);
    }
    table = group(table[index] & static_cast<Entry>(~kGroup));
    index = prefix.address[covered / 8];
  }
  // All earlier prefixes are as short or shorter, so none of the covered entries has a group.
  const std::size_t span = std::size_t{1} << (covered - prefix.bits);
  std::fill_n(table + (index & ~(span - 1)), span, static_cast<Entry>(prefix.next_hop + 1));
  return true;
}

template class PrefixTable<4, std::uint16_t>;
template class PrefixTable<16, std::uint32_t>;

}  // namespace verbscope::lookups
