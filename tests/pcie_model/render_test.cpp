// JSON and tables of predictions, and shapes from the keys of records.
#include "pcie_model/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pcie_model/predict.hpp"
#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

Prediction example() {
  VerbShape shape = inline_shape(Verb::send, Transport::ud, 60, 16);
  shape.signal_every = 64;
  shape.ports_used = 2;
  return predict_requester(wide_mlx5(), shape);
}

TEST(Render, JsonRoundTripIsLossless) {
  const Json json = to_json(example());
  EXPECT_EQ(to_json(prediction_from_json(json, "record")), json);
  const Json receiver = to_json(predict_receiver(wide_mlx5(), header_only_shape(Transport::ud, 1)));
  EXPECT_EQ(to_json(prediction_from_json(receiver, "record")), receiver);
  VerbShape shape = inline_shape(Verb::write, Transport::rc, 8, 1);
  shape.immediate = shape.inline_recv = shape.shared_recv_queue = true;
  const Json responder = to_json(predict_responder(wide_mlx5(), shape));
  EXPECT_EQ(to_json(prediction_from_json(responder, "record")), responder);
  EXPECT_EQ(responder["role"], "responder");
}

TEST(Render, TableOfAPassiveSideHasNoWqe) {
  const std::string table = format_table(predict_responder(wide_mlx5(), gather_shape(Verb::read, Transport::rc, 8, 1)));
  EXPECT_THAT(table, testing::StartsWith("wide, responder: RC read, 8 B, post list 1\nno WQE\n"));
}

TEST(Render, JsonHasEventsAndBoundsByName) {
  const Json json = to_json(example());
  EXPECT_EQ(json["pcie_per_op"]["dma_read_lines"], 2.0);
  EXPECT_EQ(json["binding"], "pcie_to_nic");
  EXPECT_EQ(json["bounds_mops"]["pcie_to_nic"], json["bound_mops"]);
  EXPECT_EQ(json["method"], "doorbell");
  EXPECT_EQ(json["shape"]["connection"], "UD");
}

TEST(Render, BrokenJsonErrorNamesPlace) {
  const auto error = [](Json json) {
    try {
      prediction_from_json(json, "r.jsonl:3");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  Json json = to_json(example());
  json["pcie_per_op"].erase("bytes_to_nic");
  EXPECT_THAT(error(json), testing::AllOf(testing::StartsWith("r.jsonl:3"), HasSubstr("bytes_to_nic")));
  json = to_json(example());
  json["method"] = "pigeon";
  EXPECT_THAT(error(json), testing::AllOf(HasSubstr("'pigeon'"), HasSubstr("doorbell")));
  json = to_json(example());
  json["shape"]["connection"] = "XRC";
  EXPECT_THAT(error(json), HasSubstr("transport 'XRC' is unknown: one of RC, UC, UD"));
}

TEST(Render, TableNamesTheBindingResource) {
  const std::string table = format_table(example());
  EXPECT_THAT(table, HasSubstr("wide, requester: UD send, 60 B inline, post list 16\n"));
  EXPECT_THAT(table, HasSubstr("WQE 128 B, 2 cache lines, by doorbell\n"));
  EXPECT_THAT(table, testing::ContainsRegex("dma_read_lines +2\\.0000\n"));
  EXPECT_THAT(table, testing::ContainsRegex("pcie_to_nic +103\\.56  binding\n"));
}

TEST(Render, JsonKeepsOffsetsOfPayloadAndLists) {
  VerbShape shape = inline_shape(Verb::send, Transport::ud, 60, 2);
  shape.payload_offset = Bytes(68);
  shape.post_step = 1;
  shape.begin_blocks = 2;
  const Prediction p = predict_requester(wide_mlx5(), shape);
  EXPECT_THAT(format_table(p), HasSubstr("UD send, 60 B inline from offset 68, post list 2"));
  const Prediction again = prediction_from_json(to_json(p), "again");
  EXPECT_EQ(again.shape.payload_offset, Bytes(68));
  EXPECT_EQ(again.shape.post_step, 1);
  EXPECT_EQ(again.shape.begin_blocks, 2);
  EXPECT_EQ(prediction_from_json(to_json(with_completion_events(p, 0.25)), "again").shape.events, 0.25);
}

TEST(Render, WqeTableAndJsonShowThePublishedFigures) {
  const WqePrediction p = predict_wqes(wide_mlx5(), Bytes(65), 10);
  const std::string table = format_table(p);
  for (const char* figure : {" 1800 B", " 1534 B", " 13443.07 MB/s", " 175.04 M/s", " 105.02 Mops", " 87.52 Mops"}) {
    EXPECT_THAT(table, HasSubstr(figure));
  }
  EXPECT_EQ(to_json(p)["mmio_bytes_to_nic"], 1800);
  EXPECT_EQ(to_json(p)["doorbell_bytes_to_nic"], 1534);
}

TEST(ShapeFromJson, ReadsTheKeysOfARecord) {
  const Json config = {{"verb", "write"},   {"connection", "UC"}, {"size", 32},
                       {"inline_size", 64}, {"post_list", 4},     {"signal_every", 8},
                       {"tx_depth", 256},   {"duration_s", 2.0},  {"threads", 3}};
  const VerbShape shape = shape_from_json(config, "record");
  EXPECT_EQ(shape.verb, Verb::write);
  EXPECT_EQ(shape.transport, Transport::uc);
  EXPECT_EQ(shape.payload, Bytes(32));
  EXPECT_TRUE(shape.inlined);
  EXPECT_EQ(shape.max_inline_cap, Bytes(64));
  EXPECT_EQ(shape.post_list, 4);
  EXPECT_EQ(shape.signal_every, 8);
  EXPECT_EQ(shape.send_queue_depth, 256);
}

TEST(ShapeFromJson, PayloadOverTheInlineSizeIsNotInline) {
  EXPECT_FALSE(shape_from_json({{"size", 65}, {"inline_size", 64}}, "x").inlined);
  EXPECT_TRUE(shape_from_json({{"size", 64}, {"inline_size", 64}}, "x").inlined);
  EXPECT_FALSE(
      shape_from_json({{"verb", "read"}, {"connection", "RC"}, {"size", 8}, {"inline_size", 64}}, "x").inlined);
}

TEST(ShapeFromJson, ReceiveOptions) {
  const Json config = {{"connection", "RC"}, {"size", 32}, {"inline_recv", 32}, {"srq", true}};
  EXPECT_TRUE(shape_from_json(config, "x").inline_recv);
  EXPECT_TRUE(shape_from_json(config, "x").shared_recv_queue);
  EXPECT_FALSE(shape_from_json({{"size", 33}, {"inline_recv", 32}}, "x").inline_recv);
  EXPECT_FALSE(shape_from_json({{"size", 0}, {"inline_recv", 32}}, "x").inline_recv);
  EXPECT_TRUE(
      shape_from_json({{"verb", "write"}, {"connection", "RC"}, {"size", 8}, {"immediate", true}}, "x").immediate);
}

TEST(ShapeFromJson, SizeIsRequiredUnlessImplied) {
  EXPECT_THROW(shape_from_json(Json::object(), "x"), Error);
  EXPECT_EQ(shape_from_json({{"header_only", true}}, "x").payload, Bytes(0));
  EXPECT_EQ(shape_from_json({{"verb", "fetch_add"}, {"connection", "RC"}}, "x").payload, Bytes(8));
  EXPECT_THROW(shape_from_json({{"size", -1}}, "x"), Error);
  EXPECT_THROW(shape_from_json({{"size", "8"}}, "x"), Error);
}

}  // namespace
}  // namespace verbscope
