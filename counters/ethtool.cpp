#include "counters/ethtool.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/error.hpp"
#include "common/fd.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxStatistics = 65'536;

// A request of the ethtool ioctl with room after its header, aligned for 64-bit values.
template <class Header>
class Request {
 public:
  explicit Request(std::size_t room) : words_((sizeof(Header) + room + 7) / 8) {}
  Header& header() { return *reinterpret_cast<Header*>(words_.data()); }
  const char* data() const { return reinterpret_cast<const char*>(words_.data()) + sizeof(Header); }

 private:
  std::vector<std::uint64_t> words_;
};

void call(int socket, const std::string& interface, void* request) {
  ifreq name{};
  if (interface.size() >= sizeof name.ifr_name) fail("{}: no name of an interface", interface);
  std::copy(interface.begin(), interface.end(), name.ifr_name);
  name.ifr_data = static_cast<char*>(request);
  check(interface, ioctl(socket, SIOCETHTOOL, &name));
}

}  // namespace

Sums read_ethtool(const std::string& interface) {
  const Fd socket(check("socket", ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  Request<ethtool_sset_info> size(sizeof(std::uint32_t));
  size.header().cmd = ETHTOOL_GSSET_INFO;
  size.header().sset_mask = 1ull << ETH_SS_STATS;
  call(socket.get(), interface, &size.header());
  std::uint32_t count = 0;
  if (size.header().sset_mask != 0) std::memcpy(&count, size.data(), sizeof count);
  if (count == 0 || count > kMaxStatistics) fail("{}: the driver has no statistics", interface);

  Request<ethtool_gstrings> names(std::size_t{count} * ETH_GSTRING_LEN);
  names.header().cmd = ETHTOOL_GSTRINGS;
  names.header().string_set = ETH_SS_STATS;
  names.header().len = count;
  call(socket.get(), interface, &names.header());
  Request<ethtool_stats> values(std::size_t{count} * sizeof(std::uint64_t));
  values.header().cmd = ETHTOOL_GSTATS;
  values.header().n_stats = count;
  call(socket.get(), interface, &values.header());

  Sums statistics;
  for (std::uint32_t i = 0; i < std::min({count, names.header().len, values.header().n_stats}); ++i) {
    const char* name = names.data() + std::size_t{i} * ETH_GSTRING_LEN;
    std::uint64_t value = 0;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    statistics[std::string(name, strnlen(name, ETH_GSTRING_LEN))] = value;
  }
  return statistics;
}

}  // namespace verbscope
