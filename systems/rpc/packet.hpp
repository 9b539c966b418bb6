// The packets of general RPCs: their header and their numbers. After eRPC (Kalia, Kaminsky and Andersen, "Datacenter
// RPCs can be General and Fast", NSDI 2019), sections 4.2.1 and 5.1.
//
// A request has n packets, with the numbers 0 to n-1, and its response k. Response packet j has the number n-1+j. The
// client sends each packet of the request and asks for each response packet but the first; the server sends one packet
// for each that it takes, with the same number:
//
//   client: request 0 .. n-2    request n-1    request for response n .. n+k-2
//   server: credit return       response n-1   response
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/units.hpp"

namespace verbscope {

enum class PacketKind : std::uint8_t { request, request_for_response, credit_return, response };

// In the byte order of the machine: both ends have the same.
struct PacketHeader {
  std::uint64_t type : 8;      // of the request
  std::uint64_t bytes : 24;    // of the message that the packet has data of; 0 without data
  std::uint64_t session : 16;  // number at the receiver
  std::uint64_t kind : 2;
  std::uint64_t number : 14;
  std::uint64_t request : 44;  // its number in the session
  std::uint64_t epoch : 16;    // of the session at the receiver
  std::uint64_t marked : 1;    // an answer: a switch had marked a packet that it answers
  std::uint64_t unused : 3;
};
inline constexpr std::uint32_t kPacketHeaderBytes = 16;
static_assert(sizeof(PacketHeader) == kPacketHeaderBytes);
inline constexpr std::uint64_t kRequestNumbers = std::uint64_t{1} << 44;

// How an end of a session is named in the packets to it. Each session with the same number has another epoch, so that
// packets of an earlier one are recognised. A restarted process begins with a random epoch.
struct SessionName {
  std::uint16_t number = 0;
  std::uint16_t epoch = 0;
  bool operator==(const SessionName&) const = default;
};
// Of ends whose peers know their numbers without asking.
inline constexpr std::uint16_t kUsualEpoch = 0xb7e1;

// A request and its response together have fewer packets than numbers exist.
inline constexpr std::uint32_t kMaxMessagePackets = 1u << 13;
inline constexpr std::uint32_t kMaxMessageBytes = 8u << 20;  // headers included (eRPC, section 4.2.1)

// How messages are cut.
struct PacketCut {
  std::uint32_t data = 0;  // bytes of data per packet

  // Packets of a message. One without data has one too.
  constexpr std::uint32_t packets(std::uint32_t bytes) const {
    return bytes <= data ? 1 : static_cast<std::uint32_t>(divide_up(bytes, data));
  }
  constexpr std::uint32_t offset(std::uint32_t packet) const { return packet * data; }
  // Bytes of data in packet `packet` of a message.
  constexpr std::uint32_t length(std::uint32_t bytes, std::uint32_t packet) const {
    return std::min(data, bytes - offset(packet));
  }
  // The largest message.
  constexpr std::uint32_t most_bytes() const {
    return std::min(kMaxMessagePackets, kMaxMessageBytes / (data + kPacketHeaderBytes)) * data;
  }
};

// The two words of a header, for sending short messages: the first has all but the number of the request.
struct PacketWords {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  // Packet 0 of this kind to this end, without data.
  static constexpr PacketWords of(PacketKind kind, const SessionName& to) {
    return {std::uint64_t{to.number} << 32 | static_cast<std::uint64_t>(kind) << 48, second_of(to.epoch)};
  }
  // The second word of packets to an end of this epoch, without the number of the request.
  static constexpr std::uint64_t second_of(std::uint16_t epoch) { return std::uint64_t{epoch} << 44; }
  // The same for a request and a message.
  constexpr PacketWords with(std::uint8_t type, std::uint32_t bytes, std::uint64_t request) const {
    return {first | type | std::uint64_t{bytes} << 8, second | request};
  }
  constexpr std::uint16_t session() const { return static_cast<std::uint16_t>(first >> 32); }
  constexpr std::uint16_t epoch() const { return static_cast<std::uint16_t>(second >> 44); }
};

// The header of a received packet. Each part is read by itself, because packets of short messages need few of them.
class ReceivedHeader {
 public:
  explicit ReceivedHeader(const std::byte* packet) : packet_(packet) {}

  std::uint8_t type() const { return load<std::uint8_t>(0); }
  std::uint32_t bytes() const { return load<std::uint32_t>(0) >> 8; }
  std::uint16_t session() const { return load<std::uint16_t>(4); }
  // Whether it is packet 0 of this kind.
  bool is_first(PacketKind kind) const { return load<std::uint16_t>(6) == static_cast<std::uint16_t>(kind); }
  std::uint64_t second_word() const { return load<std::uint64_t>(8); }  // PacketWords

 private:
  static_assert(std::endian::native == std::endian::little);
  template <class Part>
  Part load(std::size_t at) const {
    Part part;
    std::memcpy(&part, packet_ + at, sizeof part);
    return part;
  }

  const std::byte* packet_;
};

// Copies data of a packet. Inline where it is short.
[[gnu::always_inline]] inline void copy_short(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  constexpr std::uint32_t kPiece = 16;
  if (bytes < kPiece || bytes > 2 * kPiece) [[unlikely]] {
    std::memcpy(to, from, bytes);
  } else {
    std::memcpy(to, from, kPiece);
    std::memcpy(to + bytes - kPiece, from + bytes - kPiece, kPiece);
  }
}

inline PacketHeader load_header(const std::byte* packet) {
  PacketHeader header;
  std::memcpy(&header, packet, sizeof header);
  return header;
}

}  // namespace verbscope
