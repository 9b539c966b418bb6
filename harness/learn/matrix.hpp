// Dense symmetric positive definite matrices of tens of rows.
#pragma once

#include <cstddef>
#include <vector>

namespace verbscope {

using Vector = std::vector<double>;

class SquareMatrix {
 public:
  explicit SquareMatrix(std::size_t size) : size_(size), cells_(size * size) {}

  std::size_t size() const { return size_; }
  double& at(std::size_t row, std::size_t column) { return cells_[row * size_ + column]; }
  double at(std::size_t row, std::size_t column) const { return cells_[row * size_ + column]; }

  // Adds weight * v * v^T. Skips zeros: rows of a Jacobian have few other values.
  void add_product(const Vector& v, double weight);
  Vector times(const Vector& v) const;

 private:
  std::size_t size_;
  Vector cells_;
};

double dot(const Vector& a, const Vector& b);

// The solution x of a x = b, and the inverse of a, by Cholesky's decomposition. Throw Error if `a` is not positive
// definite.
Vector solved(const SquareMatrix& a, const Vector& b);
SquareMatrix inverse(const SquareMatrix& a);

}  // namespace verbscope
