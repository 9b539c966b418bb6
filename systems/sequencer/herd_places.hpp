// The two ends of `sequencer --design herd` agree on this (Kalia et al., ATC 2016, section 4.1): a client writes its
// request into a slot of the server's memory over UC and gets the answer, a value of 8 bytes, by UD SEND. The answer's
// immediate says which request it belongs to.
//
// A client chooses the worker of each request at random and numbers its requests for each worker from 0 on. Number n
// goes into slot n % slots as the word n + 1, so that a slot never holds the same word twice and nobody clears it. A
// worker knows which number of a client comes next and looks at that slot alone. A request that was lost, or whose
// answer was, is written again into the client's retry slot, which the worker looks at when its bell word has changed:
// a number that it has served already is served again.
#pragma once

#include <cstdint>

#include "systems/rpc/tags.hpp"

namespace verbscope {

// The layout of the server's region: the counter on the first line, then a block for each worker, which begins
// with its bell and has for each client `slots` slots and the retry slot, a line each.
struct HerdPlaces {
  static constexpr std::uint64_t kLine = 64;  // bytes: two peers never write to one line

  std::uint32_t workers = 1;
  std::uint32_t clients = 1;  // client threads of all machines
  std::uint32_t slots = 1;    // slots that a client has at each worker

  std::uint64_t client_bytes() const { return (slots + std::uint64_t{1}) * kLine; }
  std::uint64_t block_bytes() const { return kLine + clients * client_bytes(); }
  std::uint64_t bytes() const { return kLine + workers * block_bytes(); }
  std::uint64_t bell(std::uint32_t worker) const { return kLine + worker * block_bytes(); }
  std::uint64_t slot(std::uint32_t worker, std::uint32_t client, std::uint64_t number) const {
    return bell(worker) + kLine + client * client_bytes() + number % slots * kLine;
  }
  std::uint64_t retry(std::uint32_t worker, std::uint32_t client) const {
    return bell(worker) + kLine + client * client_bytes() + slots * kLine;
  }
};

// A word in a slot: a request's number and, in a retry slot, which try it is.
inline constexpr std::uint64_t kRetryNumbers = std::uint64_t{1} << 48;
constexpr std::uint64_t request_word(std::uint64_t number, std::uint64_t attempt = 0) {
  return attempt * kRetryNumbers + (number + 1) % kRetryNumbers;
}

}  // namespace verbscope
