// The names of the nodes: who asks for "nodeN" gets its address, and each node has its own name and interfaces.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "simulate/preload/addresses.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

constexpr std::string_view kPrefix = "node";

// "node" and a number.
struct NodeName {
  explicit NodeName(std::uint32_t number) { std::snprintf(text, sizeof text, "node%u", number); }
  char text[24];
};

// The address of a node, as text.
struct AddressText {
  AddressText(const char* prefix, std::uint32_t address) {
    std::snprintf(text, sizeof text, "%s%u.%u.%u.%u", prefix, address >> 24, address >> 16 & 255, address >> 8 & 255,
                  address & 255);
  }
  char text[32];
};

// The number of the node that `name` names; nodes() if it names none.
std::uint32_t number_of(const char* name) {
  const std::string_view text(name == nullptr ? "" : name);
  if (!text.starts_with(kPrefix)) return nodes();
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + kPrefix.size(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && number < nodes() ? number : nodes();
}

bool names_node(const char* name) {
  return simulated() && number_of(name) < nodes();
}

// Calls `function` with the node's address in place of its name.
template <class Function>
auto resolve(const char* name, int family, Function&& function) {
  if (!names_node(name)) return function(name);
  const AddressText address(family == AF_INET6 ? "::ffff:" : "", address_of_node(number_of(name)));
  return function(static_cast<const char*>(address.text));
}

int copy_name(char* to, std::size_t room) {
  const NodeName own(static_cast<std::uint32_t>(node()));
  std::snprintf(to, room, "%s", own.text);
  return std::strlen(own.text) < room ? 0 : ENAMETOOLONG;
}

// The node of an address of a program; nodes() if it is none's.
std::uint32_t node_at(const sockaddr* address, socklen_t bytes) {
  std::uint32_t ipv4 = 0;
  if (address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    ipv4 = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
  } else if (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ipv6)) ipv4 = ntohl(ipv6.s6_addr32[3]);
  }
  return std::min(ipv4 - address_of_node(0), nodes());
}

// An interface of a node, for getifaddrs(3), which returns them as one piece of memory.
struct Interface {
  ifaddrs entry;
  sockaddr_in address, mask, broadcast;
  char name[8] = {};
};

void set_interface(Interface& made, const char* name, std::uint32_t address, int mask_bits, unsigned flags) {
  const std::uint32_t mask = ~0u << (32 - mask_bits);
  const auto ipv4 = [](std::uint32_t of) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_addr.s_addr = htonl(of);
    return result;
  };
  std::strcpy(made.name, name);
  made.address = ipv4(address);
  made.mask = ipv4(mask);
  made.broadcast = ipv4(address | ~mask);
  made.entry.ifa_name = made.name;
  made.entry.ifa_flags = IFF_UP | IFF_RUNNING | flags;
  made.entry.ifa_addr = reinterpret_cast<sockaddr*>(&made.address);
  made.entry.ifa_netmask = reinterpret_cast<sockaddr*>(&made.mask);
  if ((flags & IFF_BROADCAST) != 0) made.entry.ifa_broadaddr = reinterpret_cast<sockaddr*>(&made.broadcast);
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  if (!names_node(name) || (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0))
    return REAL(getaddrinfo)(name, service, hints, found);
  addrinfo wanted{};
  if (hints != nullptr) wanted = *hints;
  wanted.ai_flags &= ~AI_ADDRCONFIG;  // which wants an address outside of the host
  const int error = resolve(name, wanted.ai_family,
                            [&](const char* text) { return REAL(getaddrinfo)(text, service, &wanted, found); });
  if (error == 0 && (*found)->ai_canonname != nullptr) {
    free((*found)->ai_canonname);
    (*found)->ai_canonname = strdup(name);
  }
  return error;
}

EXPORTED hostent* gethostbyname(const char* name) {
  return resolve(name, AF_INET, [](const char* text) { return REAL(gethostbyname)(text); });
}

EXPORTED hostent* gethostbyname2(const char* name, int family) {
  return resolve(name, family, [=](const char* text) { return REAL(gethostbyname2)(text, family); });
}

EXPORTED int gethostbyname_r(const char* name, hostent* result, char* buffer, std::size_t room, hostent** found,
                             int* error) {
  return resolve(name, AF_INET,
                 [=](const char* text) { return REAL(gethostbyname_r)(text, result, buffer, room, found, error); });
}

EXPORTED int gethostbyname2_r(const char* name, int family, hostent* result, char* buffer, std::size_t room,
                              hostent** found, int* error) {
  return resolve(name, family, [=](const char* text) {
    return REAL(gethostbyname2_r)(text, family, result, buffer, room, found, error);
  });
}

EXPORTED int getnameinfo(const sockaddr* address, socklen_t bytes, char* name, socklen_t room, char* service,
                         socklen_t service_room, int flags) {
  const std::uint32_t number = simulated() ? node_at(address, bytes) : 0;
  if (!simulated() || number >= nodes() || (flags & NI_NUMERICHOST) != 0)
    return REAL(getnameinfo)(address, bytes, name, room, service, service_room, flags);
  if (name != nullptr && room > 0) {
    const NodeName known(number);
    if (std::strlen(known.text) >= room) return EAI_OVERFLOW;
    std::strcpy(name, known.text);
    if (service == nullptr || service_room == 0) return 0;
  }
  return REAL(getnameinfo)(address, bytes, nullptr, 0, service, service_room, flags);
}

EXPORTED int gethostname(char* to, std::size_t room) noexcept {
  if (!simulated()) return REAL(gethostname)(to, room);
  const int error = copy_name(to, room);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

EXPORTED int uname(utsname* about) noexcept {
  const int result = REAL(uname)(about);
  if (result == 0 && simulated()) copy_name(about->nodename, sizeof about->nodename);
  return result;
}

EXPORTED int getifaddrs(ifaddrs** list) noexcept {
  if (!simulated()) return REAL(getifaddrs)(list);
  auto* const interfaces = static_cast<Interface*>(calloc(2, sizeof(Interface)));
  if (interfaces == nullptr) return -1;
  set_interface(interfaces[0], "lo", INADDR_LOOPBACK, 8, IFF_LOOPBACK);
  set_interface(interfaces[1], "eth0", address_of_node(static_cast<std::uint32_t>(node())), 16,
                IFF_BROADCAST | IFF_MULTICAST);
  interfaces[0].entry.ifa_next = &interfaces[1].entry;
  *list = &interfaces[0].entry;
  return 0;
}

EXPORTED void freeifaddrs(ifaddrs* list) noexcept {
  if (!simulated()) return REAL(freeifaddrs)(list);
  free(list);
}
