// The verbs of work requests and their properties: one row of facts per verb.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "common/enum_table.hpp"
#include "common/units.hpp"
#include "wire/packet.hpp"

namespace verbscope {

enum class Verb : std::uint8_t { send, write, read, compare_swap, fetch_add, recv };

struct alignas(64) VerbFacts {  // as for TransportFacts
  Verb value;
  std::string_view name;  // in options and records
  bool requests;          // posted to a send queue and sent in packets; false for RECV
  bool carries_payload;   // the request carries the payload to the responder
  bool wants_response;    // a response returns data to the requester
  bool one_sided;         // accesses memory of the responder, whose program is not involved
  bool atomic;            // operates on kAtomicBytes
  bool may_inline;        // the payload can be in the WQE
  bool takes_immediate;   // can deliver 4 bytes in the completion of a RECV
  Bytes request_header;   // extension header of the first packet of a WRITE, or of a READ or atomic request
  Bytes response_header;  // extension header of the response, besides the AETH
};

// Maximum of outstanding READs and atomics per QP on mlx4 and mlx5 devices (max_qp_rd_atom of ibv_query_device).
inline constexpr std::uint32_t kMaxReads = 16;
// The RNR retry count of an RC QP that retries without a limit.
inline constexpr std::uint8_t kRnrRetryForever = 7;

inline constexpr EnumTable<Verb, VerbFacts> kVerbs{{
    {.value = Verb::send,
     .name = "send",
     .requests = true,
     .carries_payload = true,
     .wants_response = false,
     .one_sided = false,
     .atomic = false,
     .may_inline = true,
     .takes_immediate = true,
     .request_header = Bytes(0),
     .response_header = Bytes(0)},
    {.value = Verb::write,
     .name = "write",
     .requests = true,
     .carries_payload = true,
     .wants_response = false,
     .one_sided = true,
     .atomic = false,
     .may_inline = true,
     .takes_immediate = true,
     .request_header = kReth,
     .response_header = Bytes(0)},
    {.value = Verb::read,
     .name = "read",
     .requests = true,
     .carries_payload = false,
     .wants_response = true,
     .one_sided = true,
     .atomic = false,
     .may_inline = false,
     .takes_immediate = false,
     .request_header = kReth,
     .response_header = Bytes(0)},
    {.value = Verb::compare_swap,
     .name = "compare_swap",
     .requests = true,
     .carries_payload = false,
     .wants_response = true,
     .one_sided = true,
     .atomic = true,
     .may_inline = false,
     .takes_immediate = false,
     .request_header = kAtomicEth,
     .response_header = kAtomicAckEth},
    {.value = Verb::fetch_add,
     .name = "fetch_add",
     .requests = true,
     .carries_payload = false,
     .wants_response = true,
     .one_sided = true,
     .atomic = true,
     .may_inline = false,
     .takes_immediate = false,
     .request_header = kAtomicEth,
     .response_header = kAtomicAckEth},
    {.value = Verb::recv,
     .name = "recv",
     .requests = false,
     .carries_payload = false,
     .wants_response = false,
     .one_sided = false,
     .atomic = false,
     .may_inline = false,
     .takes_immediate = true,
     .request_header = Bytes(0),
     .response_header = Bytes(0)},
}};
static_assert(in_order(kVerbs));

constexpr const VerbFacts& facts(Verb verb) {
  return row_of(kVerbs, verb);
}
constexpr std::string_view to_string(Verb verb) {
  return facts(verb).name;
}
// The inverse of to_string; case-sensitive. Throws Error with the text and the allowed values.
inline Verb verb_from(std::string_view text) {
  return value_named(kVerbs, "verb", text);
}

// Operand size of compare-and-swap and fetch-and-add (InfiniBand Architecture Specification 1.3, volume 1, section
// 9.4.5).
inline constexpr std::uint32_t kAtomicBytes = 8;

class VerbSet {
 public:
  constexpr VerbSet(std::initializer_list<Verb> verbs) {
    for (const Verb verb : verbs) bits_ |= bit(verb);
  }
  constexpr bool has(Verb verb) const { return (bits_ & bit(verb)) != 0; }

 private:
  static constexpr std::uint32_t bit(Verb verb) { return std::uint32_t{1} << static_cast<unsigned>(verb); }
  std::uint32_t bits_ = 0;
};

}  // namespace verbscope
