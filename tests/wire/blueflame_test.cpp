// The driver's choice between BlueFlame and a doorbell.
#include <gtest/gtest.h>

#include "wire/doorbell.hpp"

namespace verbscope {
namespace {

constexpr Bytes kLargest{256};

// A lone SEND of 28 B inline, whose WQE has three units.
constexpr Post kInlineSend{.verb = Verb::send, .payload = Bytes(28), .inlined = true, .size = Bytes(48), .list = 1};

bool by_both(const Post& post) {
  return goes_by_blueflame(NicFamily::mlx4, kLargest, post) && goes_by_blueflame(NicFamily::mlx5, kLargest, post);
}
bool by_mlx5_only(const Post& post) {
  return !goes_by_blueflame(NicFamily::mlx4, kLargest, post) && goes_by_blueflame(NicFamily::mlx5, kLargest, post);
}
bool by_neither(const Post& post) {
  return !goes_by_blueflame(NicFamily::mlx4, kLargest, post) && !goes_by_blueflame(NicFamily::mlx5, kLargest, post);
}

TEST(BlueFlame, SendsSingleSmallInlineWqe) {
  EXPECT_TRUE(by_both(kInlineSend));
  Post largest = kInlineSend;
  largest.size = kLargest;
  EXPECT_TRUE(by_both(largest));
}

TEST(BlueFlame, SendsNoListNoOneUnitWqeAndNoLongWqe) {
  Post post = kInlineSend;
  post.list = 2;
  EXPECT_TRUE(by_neither(post));
  post = kInlineSend;
  post.size = kWqeUnit;
  EXPECT_TRUE(by_neither(post));
  post.size = kLargest + kWqeUnit;
  EXPECT_TRUE(by_neither(post));
}

TEST(BlueFlame, OnMlx4RequiresDataInWqe) {
  Post post = kInlineSend;
  post.inlined = false;
  EXPECT_TRUE(by_mlx5_only(post));
  post = kInlineSend;
  post.payload = Bytes(0);
  EXPECT_TRUE(by_mlx5_only(post));
}

TEST(BlueFlame, OnMlx4TreatsReadAndEmptyWriteAsInline) {
  Post post{.verb = Verb::read, .payload = Bytes(64), .inlined = false, .size = Bytes(48), .list = 1};
  EXPECT_TRUE(by_both(post));
  post.verb = Verb::write;
  EXPECT_TRUE(by_mlx5_only(post));
  post.payload = Bytes(0);
  EXPECT_TRUE(by_both(post));
}

}  // namespace
}  // namespace verbscope
