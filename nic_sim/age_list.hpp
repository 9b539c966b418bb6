// An intrusive list by age: the order of a least-recently-used cache, with constant-time insertion, touch and removal.
#pragma once

namespace verbscope::sim {

template <class T, T* T::*Newer, T* T::*Older>
class AgeList {
 public:
  bool empty() const { return newest_ == nullptr; }
  T& oldest() const { return *oldest_; }

  void insert(T& item) {
    item.*Newer = nullptr;
    item.*Older = newest_;
    (newest_ == nullptr ? oldest_ : newest_->*Newer) = &item;
    newest_ = &item;
  }
  void remove(T& item) {
    (item.*Newer == nullptr ? newest_ : item.*Newer->*Older) = item.*Older;
    (item.*Older == nullptr ? oldest_ : item.*Older->*Newer) = item.*Newer;
  }
  void touch(T& item) {
    if (newest_ == &item) return;
    remove(item);
    insert(item);
  }

 private:
  T* newest_ = nullptr;
  T* oldest_ = nullptr;
};

}  // namespace verbscope::sim
