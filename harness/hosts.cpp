#include "harness/hosts.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>

#include "common/error.hpp"
#include "harness/text_file.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Text of the file in a message: short, and nothing that a terminal would obey.
std::string in_quotes(std::string_view text) {
  std::string shown(text.substr(0, 60));
  std::ranges::replace_if(
      shown, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return '"' + shown + (text.size() > 60 ? "...\"" : "\"");
}

// Letters, digits and `others`, not beginning with '-': no host file can smuggle in an option or a command.
bool is_plain(std::string_view text, std::string_view others) {
  const auto plain = [others](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && text.size() <= 255 && std::ranges::all_of(text, plain);
}

int parse_number(std::string_view text, int low, int high, const std::string& what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    fail("{}: expected a number from {} to {}, got {}", what, low, high, in_quotes(text));
  }
  return value;
}

// The part of a range inside the brackets: "01-16,20" gives 01 ... 16 20.
std::vector<std::string> expand_list(std::string_view list, const std::string& what) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const std::size_t dash = item.find('-');
    const std::string_view low = item.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : item.substr(dash + 1);
    const int first = parse_number(low, 0, 99'999'999, what);
    const int last = parse_number(high, 0, 99'999'999, what);
    if (last < first) fail("{}: the range {} runs backwards", what, in_quotes(item));
    if (static_cast<std::size_t>(last - first) >= kMaxHosts - std::min(out.size(), kMaxHosts - 1)) {
      fail("{}: more than {} hosts", what, kMaxHosts);
    }
    for (int n = first; n <= last; ++n) out.push_back(fmt::format("{:0{}}", n, low.size()));
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

void set_device(Host& host, std::string_view value, const std::string& what) {
  const std::size_t colon = value.find(':');
  host.device = value.substr(0, colon);
  if (!is_plain(host.device, "._-")) fail("{}: {} is not a device name", what, in_quotes(host.device));
  if (colon != std::string_view::npos) host.ib_port = parse_number(value.substr(colon + 1), 1, 255, what);
}

HostRole parse_role(std::string_view value, const std::string& what) {
  if (value == "any") return HostRole::any;
  if (value == "server") return HostRole::server;
  if (value == "client") return HostRole::client;
  fail("{}: expected server, client or any, got {}", what, in_quotes(value));
}

void set_key(Host& host, std::string_view word, const std::string& where) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) fail("{}: expected key=value after the host, got {}", where, in_quotes(word));
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  const std::string what = fmt::format("{}: {}", where, key);
  if (key == "device") {
    set_device(host, value, what);
  } else if (key == "gid_index") {
    host.gid_index = parse_number(value, -1, 65535, what);
  } else if (key == "role") {
    host.role = parse_role(value, what);
  } else if (key == "address") {
    if (!is_plain(value, "._-:")) fail("{}: {} is not an address", what, in_quotes(value));
    host.address = value;
  } else {
    fail("{}: unknown key {}, allowed: device, gid_index, role, address", where, in_quotes(key));
  }
}

std::vector<std::string_view> split_words(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(kBlanks, start), line.size());
    words.push_back(line.substr(start, end - start));
    line.remove_prefix(end);
  }
}

void parse_line(std::string_view line, int number, const std::string& where, std::vector<Host>& hosts) {
  const std::vector<std::string_view> words = split_words(line);
  if (words.empty()) return;
  Host host;
  host.line = number;
  std::string_view name = words[0];
  const std::size_t at = name.find('@');
  if (at != std::string_view::npos) {
    host.user = name.substr(0, at);
    name.remove_prefix(at + 1);
    if (!is_plain(host.user, "._-")) fail("{}: {} is not a user name", where, in_quotes(host.user));
  }
  for (std::size_t i = 1; i < words.size(); ++i) set_key(host, words[i], where);
  for (std::string& each : expand_host_range(std::string(name), where)) {
    if (!is_plain(each, "._-:")) fail("{}: {} is not a host name", where, in_quotes(each));
    if (hosts.size() == kMaxHosts) fail("{}: more than {} hosts", where, kMaxHosts);
    host.name = std::move(each);
    hosts.push_back(host);
  }
}

}  // namespace

std::vector<std::string> expand_host_range(const std::string& pattern, const std::string& where) {
  const std::size_t open = pattern.find('[');
  const std::size_t close = pattern.find(']');
  if (open == std::string::npos && close == std::string::npos) return {pattern};
  if (open == std::string::npos || close == std::string::npos || close < open) {
    fail("{}: the brackets of {} do not pair", where, in_quotes(pattern));
  }
  const std::string what = fmt::format("{}: range {}", where, in_quotes(pattern));
  std::vector<std::string> out;
  for (const std::string& tail : expand_host_range(pattern.substr(close + 1), where)) {
    for (const std::string& number : expand_list(std::string_view(pattern).substr(open + 1, close - open - 1), what)) {
      if (out.size() == kMaxHosts) fail("{}: more than {} hosts", what, kMaxHosts);
      out.push_back(pattern.substr(0, open) + number + tail);
    }
  }
  return out;
}

std::vector<Host> read_hosts_file(const std::filesystem::path& path) {
  return parse_hosts(read_text_file(path), path);
}

std::vector<Host> parse_hosts(std::string_view text, const std::string& where) {
  std::vector<Host> hosts;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    parse_line(text.substr(0, end), number, fmt::format("{}:{}", where, number), hosts);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (hosts.empty()) fail("{}: names no host", where);
  return hosts;
}

bool is_this_machine(const std::string& name) {
  if (name == "localhost" || name == "::1" || name.starts_with("127.")) return true;
  char hostname[HOST_NAME_MAX + 1] = {};
  if (gethostname(hostname, sizeof hostname - 1) != 0) return false;
  const std::string full = hostname;
  return name == full || name == full.substr(0, full.find('.'));
}

Cast cast_roles(const std::vector<Host>& hosts, const std::string& where) {
  auto server = std::ranges::find(hosts, HostRole::server, &Host::role);
  if (server == hosts.end()) server = std::ranges::find(hosts, HostRole::any, &Host::role);
  if (server == hosts.end()) fail("{}: no host may be the server: one needs role=server or role=any", where);
  Cast cast{.server = *server, .clients = {}};
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    if (host != server && host->role != HostRole::server) cast.clients.push_back(*host);
  }
  if (cast.clients.empty() && hosts.size() == 1 && server->role == HostRole::any) cast.clients.push_back(*server);
  if (cast.clients.empty()) fail("{}: no host may be the client: one needs role=client or role=any", where);
  return cast;
}

}  // namespace verbscope
