// How a side proves that it knows the secret of the run, which itself never crosses: by HMAC-SHA256 (RFC 2104), keyed
// with the secret, over its role and both sides' nonces. What one run, or the other side, has proven is of no use in
// another.
#pragma once

#include <string>
#include <string_view>

namespace verbscope {

// 32 random bytes as 64 hexadecimal digits. Throws when the system has none.
std::string make_nonce();
// Whether `text` is 64 lower-case hexadecimal digits, as nonces and proofs are.
bool is_digest_text(std::string_view text);

enum class Role { client, server };

struct Nonces {
  std::string client, server;
};

// HMAC-SHA256 of `text`, in hexadecimal.
std::string hmac_sha256(std::string_view key, std::string_view text);
// What the side in `role` shows of `secret`.
std::string prove(std::string_view secret, Role role, const Nonces& nonces);
// Whether `proof` is that, compared in a time that does not depend on where it differs.
bool is_proof(std::string_view proof, std::string_view secret, Role role, const Nonces& nonces);

}  // namespace verbscope
