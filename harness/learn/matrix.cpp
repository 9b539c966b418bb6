#include "harness/learn/matrix.hpp"

#include <cmath>
#include <numeric>

#include "common/error.hpp"

namespace verbscope {
namespace {

// The lower triangle L with a = L L^T.
SquareMatrix cholesky(const SquareMatrix& a) {
  SquareMatrix lower(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a.at(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= lower.at(i, k) * lower.at(j, k);
      if (i == j && !(sum > 0)) fail("the matrix of the fit is not positive definite (row {})", i);
      lower.at(i, j) = i == j ? std::sqrt(sum) : sum / lower.at(j, j);
    }
  }
  return lower;
}

Vector solved_by(const SquareMatrix& lower, Vector b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= lower.at(i, k) * b[k];
    b[i] /= lower.at(i, i);
  }
  for (std::size_t i = b.size(); i-- > 0;) {
    for (std::size_t k = i + 1; k < b.size(); ++k) b[i] -= lower.at(k, i) * b[k];
    b[i] /= lower.at(i, i);
  }
  return b;
}

}  // namespace

void SquareMatrix::add_product(const Vector& v, double weight) {
  for (std::size_t i = 0; i < size_; ++i) {
    if (v[i] == 0) continue;
    for (std::size_t j = 0; j < size_; ++j) at(i, j) += weight * v[i] * v[j];
  }
}

Vector SquareMatrix::times(const Vector& v) const {
  Vector out(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t j = 0; j < size_; ++j) out[i] += at(i, j) * v[j];
  }
  return out;
}

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Vector solved(const SquareMatrix& a, const Vector& b) {
  return solved_by(cholesky(a), b);
}

SquareMatrix inverse(const SquareMatrix& a) {
  const SquareMatrix lower = cholesky(a);
  SquareMatrix out(a.size());
  for (std::size_t j = 0; j < a.size(); ++j) {
    Vector unit(a.size());
    unit[j] = 1;
    const Vector column = solved_by(lower, unit);
    for (std::size_t i = 0; i < a.size(); ++i) out.at(i, j) = column[i];
  }
  return out;
}

}  // namespace verbscope
