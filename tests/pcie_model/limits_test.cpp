// Shapes that cannot be posted: one line that names option, value and what is allowed.
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

TEST(Limits, VerbOfAnotherTransport) {
  EXPECT_EQ(requester_error(gather_shape(write, ud, 8, 1)), "write is no verb of transport UD");
  EXPECT_EQ(requester_error(gather_shape(recv, ud, 8, 1)), "recv has no requester: ask for the receiver");
}

TEST(Limits, PayloadOverTheInlineLimit) {
  EXPECT_EQ(requester_error(inline_shape(send, ud, 513, 1)), "inline size 513 B is over what wide offers: 512 B");
  EXPECT_EQ(requester_error(inline_shape(send, ud, 512, 1)), "");
}

TEST(Limits, PayloadOverTheMtuOnUd) {
  EXPECT_EQ(requester_error(gather_shape(send, ud, 4097, 1)),
            "payload of 4097 B is over the MTU of wide on UD: 4096 B");
  EXPECT_EQ(requester_error(gather_shape(send, rc, 4097, 1)), "");
}

TEST(Limits, HeaderOnlyWithASize) {
  VerbShape shape = header_only_shape(ud, 1);
  shape.payload = Bytes(4);
  EXPECT_EQ(requester_error(shape), "header-only carries no payload, but the size is 4 B");
  shape = header_only_shape(rc, 1);
  shape.verb = write;
  EXPECT_EQ(requester_error(shape), "header-only is an option of send, not of write");
}

TEST(Limits, PostListOverTheQueueDepth) {
  EXPECT_EQ(requester_error(inline_shape(send, ud, 8, 129)), "post list 129 is not from 1 to 128");
  EXPECT_EQ(requester_error(inline_shape(send, ud, 8, 0)), "post list 0 is not from 1 to 128");
}

TEST(Limits, NumbersOutOfRange) {
  VerbShape shape = inline_shape(send, ud, 8, 1);
  shape.signal_every = 129;
  EXPECT_EQ(requester_error(shape), "signal-every 129 is not from 1 to 128");
  shape = inline_shape(send, ud, 8, 1);
  shape.send_queue_depth = 0;
  EXPECT_EQ(requester_error(shape), "send queue depth 0 is not from 1 to 1048576");
  shape = inline_shape(send, ud, 8, 1);
  shape.ports_used = 3;
  EXPECT_EQ(requester_error(shape), "number of ports 3 is not from 1 to 2");
  EXPECT_EQ(requester_error(gather_shape(fetch_add, rc, 16, 1)), "payload of fetch_add is 8 B, not 16");
}

TEST(Limits, ReceiverTakesSendsOnly) {
  const auto error = [](const VerbShape& shape) { return message_of([&] { predict_receiver(wide_mlx5(), shape); }); };
  EXPECT_EQ(error(gather_shape(write, rc, 8, 1)), "write needs no RECV");
  EXPECT_EQ(error(gather_shape(send, ud, 8, 513)), "post list 513 is not from 1 to 512");
  EXPECT_EQ(error(gather_shape(recv, ud, 8, 1)), "");
}

TEST(Limits, ResponderTakesOneSidedVerbsOnly) {
  const auto error = [](const VerbShape& shape) { return message_of([&] { predict_responder(wide_mlx5(), shape); }); };
  EXPECT_EQ(error(gather_shape(send, rc, 8, 1)), "send is not one-sided: ask for the receiver");
  EXPECT_EQ(error(gather_shape(read, uc, 8, 1)), "read is no verb of transport UC");
  EXPECT_EQ(error(gather_shape(fetch_add, rc, 4, 1)), "payload of fetch_add is 8 B, not 4");
  VerbShape shape = gather_shape(read, rc, 8, 1);
  shape.immediate = true;
  EXPECT_EQ(error(shape), "read has no immediate");
}

TEST(Limits, InlineReceiveWhereThereIsNone) {
  VerbShape shape = inline_shape(send, ud, 8, 1);
  shape.inline_recv = true;
  EXPECT_EQ(message_of([&] { predict_receiver(wide_mlx5(), shape); }), "wide (mlx5) has no inline receive of UD send");
  shape.shared_recv_queue = true;
  EXPECT_EQ(message_of([&] { predict_receiver(narrow_mlx4(), shape); }),
            "narrow (mlx4) has no inline receive of UD send on a shared receive queue");
}

}  // namespace
}  // namespace verbscope
