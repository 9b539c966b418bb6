// Shapes that cannot be posted: the error names the option, its value and the allowed values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

using enum Verb;
using enum Transport;

template <class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string requester_error(const VerbShape& shape) {
  return message_of([&] { predict_requester(wide_mlx5(), shape); });
}

// Matches a message that contains all parts.
template <class... Parts>
auto names(Parts... parts) {
  return testing::AllOf(testing::HasSubstr(parts)...);
}

TEST(Limits, RefusesVerbOfAnotherTransport) {
  EXPECT_THAT(requester_error(gather_shape(write, ud, 8, 1)), names("UD", "write"));
  EXPECT_THAT(requester_error(gather_shape(recv, ud, 8, 1)), names("recv", "predict the receiver"));
}

TEST(Limits, RefusesPayloadOverInlineLimit) {
  EXPECT_THAT(requester_error(inline_shape(send, ud, 513, 1)), names("inline size 513 B", "wide", "512 B"));
  EXPECT_EQ(requester_error(inline_shape(send, ud, 512, 1)), "");
}

TEST(Limits, RefusesPayloadOverMtuOnUd) {
  EXPECT_THAT(requester_error(gather_shape(send, ud, 4097, 1)), names("4097 B", "UD", "MTU", "4096 B"));
  EXPECT_EQ(requester_error(gather_shape(send, rc, 4097, 1)), "");
}

TEST(Limits, RefusesHeaderOnlyWithPayloadOrOtherVerb) {
  VerbShape shape = header_only_shape(ud, 1);
  shape.payload = Bytes(4);
  EXPECT_THAT(requester_error(shape), names("header-only", "4 B"));
  shape = header_only_shape(rc, 1);
  shape.verb = write;
  EXPECT_THAT(requester_error(shape), names("write", "header-only", "send"));
}

TEST(Limits, RefusesPostListOverQueueDepth) {
  EXPECT_THAT(requester_error(inline_shape(send, ud, 8, 129)), names("post list 129", "1 to 128"));
  EXPECT_THAT(requester_error(inline_shape(send, ud, 8, 0)), names("post list 0", "1 to 128"));
}

TEST(Limits, RefusesNumbersOutOfRange) {
  VerbShape shape = inline_shape(send, ud, 8, 1);
  shape.signal_every = 129;
  EXPECT_THAT(requester_error(shape), names("signal-every 129", "1 to 128"));
  shape = inline_shape(send, ud, 8, 1);
  shape.send_queue_depth = 0;
  EXPECT_THAT(requester_error(shape), names("send queue depth 0", "1 to 1048576"));
  shape = inline_shape(send, ud, 8, 1);
  shape.ports_used = 3;
  EXPECT_THAT(requester_error(shape), names("number of ports 3", "1 to 2"));
  EXPECT_THAT(requester_error(gather_shape(fetch_add, rc, 16, 1)), names("fetch_add", "16 B", "8 B"));
}

TEST(Limits, ReceiverAcceptsOnlySends) {
  const auto error = [](const VerbShape& shape) { return message_of([&] { predict_receiver(wide_mlx5(), shape); }); };
  EXPECT_THAT(error(gather_shape(write, rc, 8, 1)), names("write", "RECV", "predict the responder"));
  EXPECT_THAT(error(gather_shape(send, ud, 8, 513)), names("post list 513", "1 to 512"));
  EXPECT_EQ(error(gather_shape(recv, ud, 8, 1)), "");
}

TEST(Limits, ResponderAcceptsOnlyOneSidedVerbs) {
  const auto error = [](const VerbShape& shape) { return message_of([&] { predict_responder(wide_mlx5(), shape); }); };
  EXPECT_THAT(error(gather_shape(send, rc, 8, 1)), names("send", "one-sided", "predict the receiver"));
  EXPECT_THAT(error(gather_shape(read, uc, 8, 1)), names("UC", "read"));
  EXPECT_THAT(error(gather_shape(fetch_add, rc, 4, 1)), names("fetch_add", "4 B", "8 B"));
  VerbShape shape = gather_shape(read, rc, 8, 1);
  shape.immediate = true;
  EXPECT_THAT(error(shape), names("read", "immediate"));
}

TEST(Limits, RefusesUnsupportedInlineReceive) {
  VerbShape shape = inline_shape(send, ud, 8, 1);
  shape.inline_recv = true;
  EXPECT_THAT(message_of([&] { predict_receiver(wide_mlx5(), shape); }),
              names("wide", "mlx5", "inline receive", "UD send"));
  shape.shared_recv_queue = true;
  EXPECT_THAT(message_of([&] { predict_receiver(narrow_mlx4(), shape); }),
              names("narrow", "mlx4", "inline receive", "shared receive queue"));
}

}  // namespace
}  // namespace verbscope
