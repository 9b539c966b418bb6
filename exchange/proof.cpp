#include "exchange/proof.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <span>

#include "common/error.hpp"

namespace verbscope {

namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

std::string hexadecimal(const Digest& bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

std::string make_nonce() {
  Digest bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) fail("OpenSSL has no random bytes for a nonce");
  return hexadecimal(bytes);
}

bool is_digest_text(std::string_view text) {
  return text.size() == 2 * SHA256_DIGEST_LENGTH && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  Digest digest;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), digest.data(), nullptr) ==
      nullptr) {
    fail("OpenSSL cannot compute HMAC-SHA256");
  }
  return hexadecimal(digest);
}

std::string prove(std::string_view secret, Role role, const Nonces& nonces) {
  return hmac_sha256(secret, fmt::format("verbscope exchange, {}, {}, {}", role == Role::client ? "client" : "server",
                                         nonces.client, nonces.server));
}

bool is_proof(std::string_view proof, std::string_view secret, Role role, const Nonces& nonces) {
  const std::string right = prove(secret, role, nonces);
  return proof.size() == right.size() && CRYPTO_memcmp(proof.data(), right.data(), right.size()) == 0;
}

}  // namespace verbscope
