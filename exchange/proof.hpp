// Proofs that a side has the secret of the run without sending it: HMAC-SHA256 (RFC 2104), keyed with the secret, of
// its role and both nonces. A proof is invalid in other runs and for the other side.
#pragma once

#include <string>
#include <string_view>

namespace verbscope {

// 32 random bytes as 64 hexadecimal digits. Throws if the system has no random source.
std::string make_nonce();
// True if `text` is 64 lower-case hexadecimal digits, the form of nonces and proofs.
bool is_digest_text(std::string_view text);

enum class Role { client, server };

struct Nonces {
  std::string client, server;
};

// HMAC-SHA256 of `text`, in hexadecimal.
std::string hmac_sha256(std::string_view key, std::string_view text);
// The proof of the side in `role`.
std::string prove(std::string_view secret, Role role, const Nonces& nonces);
// True if `proof` equals prove(...). Constant time: independent of where they differ.
bool is_proof(std::string_view proof, std::string_view secret, Role role, const Nonces& nonces);

}  // namespace verbscope
