#include "pcie_model/render.hpp"

#include <cstdint>
#include <string_view>

#include "common/enum_table.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope {
namespace {

struct MethodName {
  PostMethod value;
  std::string_view name;
};

constexpr EnumTable<PostMethod, MethodName> kMethodNames{{
    {.value = PostMethod::blueflame, .name = "blueflame"},
    {.value = PostMethod::doorbell, .name = "doorbell"},
    {.value = PostMethod::doorbell_record, .name = "doorbell_record"},
    {.value = PostMethod::none, .name = "none"},
}};
static_assert(in_order(kMethodNames));

std::string_view method_name(PostMethod method) {
  return row_of(kMethodNames, method).name;
}

std::string describe(const VerbShape& shape) {
  std::string text = fmt::format("{} {}", to_string(shape.transport), to_string(shape.verb));
  if (shape.header_only) {
    text += ", header-only";
  } else {
    text += fmt::format(", {} B{}", shape.payload.value, shape.inlined && shape.payload.value > 0 ? " inline" : "");
  }
  if (shape.payload_offset.value > 0) text += fmt::format(" from offset {}", shape.payload_offset.value);
  if (shape.immediate) text += ", immediate";
  if (shape.inline_recv) text += ", inline receive";
  if (shape.shared_recv_queue) text += ", shared receive queue";
  return text + fmt::format(", post list {}", shape.post_list);
}

}  // namespace

Json to_json(const VerbShape& shape) {
  Json json = {{"verb", to_string(shape.verb)},      {"connection", to_string(shape.transport)},
               {"size", shape.payload.value},        {"header_only", shape.header_only},
               {"immediate", shape.immediate},       {"inline_size", shape.max_inline_cap.value},
               {"inlined", shape.inlined},           {"post_list", shape.post_list},
               {"signal_every", shape.signal_every}, {"tx_depth", shape.send_queue_depth},
               {"rx_depth", shape.recv_queue_depth}, {"recv_inlined", shape.inline_recv},
               {"srq", shape.shared_recv_queue},     {"payload_offset", shape.payload_offset.value}};
  if (shape.max_inline_recv.value > 0) json["inline_recv"] = shape.max_inline_recv.value;
  if (shape.post_step > 0) json["post_step"] = shape.post_step;
  if (shape.begin_blocks > 0) json["begin_blocks"] = shape.begin_blocks;
  if (shape.events > 0) json["events_per_op"] = shape.events;
  if (shape.ports_used) json["ports_used"] = *shape.ports_used;
  return json;
}

VerbShape shape_from_json(const Json& config, const std::string& where) {
  JsonFields fields(config, where);
  VerbShape shape;
  if (fields.has("verb")) shape.verb = fields.parse("verb", verb_from);
  if (fields.has("connection")) shape.transport = fields.parse("connection", transport_from);
  shape.header_only = fields.optional<bool>("header_only", false);
  shape.immediate = fields.optional<bool>("immediate", false);
  const VerbFacts& verb = facts(shape.verb);
  if (verb.atomic || shape.header_only) {
    shape.payload = Bytes(fields.optional<std::uint64_t>("size", verb.atomic ? kAtomicBytes : 0));
  } else {
    shape.payload = Bytes(fields.require<std::uint64_t>("size"));
  }
  shape.max_inline_cap = Bytes(fields.optional<std::uint64_t>("inline_size", 0));
  const bool fits = verb.may_inline && shape.payload.value > 0 && shape.payload <= shape.max_inline_cap;
  shape.inlined = fields.optional<bool>("inlined", fits);
  shape.post_list = fields.optional<int>("post_list", shape.post_list);
  shape.events = fields.optional<double>("events_per_op", 0);
  shape.post_step = fields.optional<int>("post_step", 0);
  shape.begin_blocks = fields.optional<int>("begin_blocks", 0);
  shape.signal_every = fields.optional<int>("signal_every", shape.signal_every);
  shape.send_queue_depth = fields.optional<int>("tx_depth", shape.send_queue_depth);
  shape.recv_queue_depth = fields.optional<int>("rx_depth", shape.recv_queue_depth);
  const auto recv_inline_bytes = fields.optional<std::uint64_t>("inline_recv", 0);
  shape.max_inline_recv = Bytes(recv_inline_bytes);
  const bool arrives_inline = shape.payload.value > 0 && shape.payload.value <= recv_inline_bytes;
  shape.inline_recv = fields.optional<bool>("recv_inlined", arrives_inline);
  shape.shared_recv_queue = fields.optional<bool>("srq", false);
  shape.payload_offset = Bytes(fields.optional<std::uint64_t>("payload_offset", 0));
  if (fields.has("ports_used")) shape.ports_used = fields.require<int>("ports_used");
  return shape;
}

Json to_json(const Prediction& prediction) {
  Json events = Json::object();
  PciePerOp::each(prediction.pcie, [&](const char* name, double value) { events[name] = value; });
  Json cpu = Json::object();
  CpuStores::each(prediction.cpu, [&](const char* name, double value) { cpu[name] = value; });
  Json bounds = Json::object();
  for (const RateBound& bound : prediction.bounds) bounds[bound.resource] = bound.mops;
  return {{"cluster", prediction.wire.name},
          {"wire", to_json(prediction.wire)},
          {"role", prediction.role},
          {"shape", to_json(prediction.shape)},
          {"wqe_bytes", prediction.wqe_bytes.value},
          {"wqe_lines", prediction.wqe_lines},
          {"method", method_name(prediction.method)},
          {"pcie_per_op", events},
          {"cpu_per_op", cpu},
          {"bounds_mops", bounds},
          {"binding", prediction.binding},
          {"bound_mops", prediction.bound_mops}};
}

Prediction prediction_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  Prediction out;
  out.wire = wire_from_json(fields.at("wire"), where + ": wire");
  out.wire.name = fields.require<std::string>("cluster");
  out.role = fields.require<std::string>("role");
  out.shape = shape_from_json(fields.at("shape"), where + ": shape");
  out.wqe_bytes = Bytes(fields.require<std::uint64_t>("wqe_bytes"));
  out.wqe_lines = fields.require<int>("wqe_lines");
  out.method =
      fields.parse("method", [](const std::string& text) { return value_named(kMethodNames, "post method", text); });
  JsonFields events = fields.object("pcie_per_op");
  PciePerOp::each(out.pcie, [&](const char* name, double& value) { value = events.require<double>(name); });
  events.reject_unknown();
  JsonFields cpu = fields.object("cpu_per_op");
  CpuStores::each(out.cpu, [&](const char* name, double& value) { value = cpu.require<double>(name); });
  cpu.reject_unknown();
  JsonFields bounds = fields.object("bounds_mops");
  for (const auto& [resource, mops] : fields.at("bounds_mops").items()) {
    out.bounds.push_back({resource, bounds.require<double>(resource)});
  }
  out.binding = fields.require<std::string>("binding");
  out.bound_mops = fields.require<double>("bound_mops");
  fields.reject_unknown();
  return out;
}

Json to_json(const WqePrediction& prediction) {
  return {{"cluster", prediction.cluster},
          {"wqe_bytes", prediction.wqe_bytes.value},
          {"wqes", prediction.wqes},
          {"lines_per_wqe", prediction.lines_per_wqe},
          {"mmio_bytes_to_nic", prediction.mmio_bytes_to_nic.value},
          {"doorbell_bytes_to_nic", prediction.doorbell_bytes_to_nic.value},
          {"dma_read_mb_per_s", prediction.dma_read_mb_per_s},
          {"mmio_lines_per_us", prediction.mmio_lines_per_us},
          {"dma_read_limit_mops", prediction.dma_read_limit_mops},
          {"mmio_limit_mops", prediction.mmio_limit_mops}};
}

std::string format_table(const Prediction& prediction) {
  std::string text = fmt::format("{}, {}: {}\n", prediction.wire.name, prediction.role, describe(prediction.shape));
  if (prediction.method == PostMethod::none) {
    text += "no WQE\n";
  } else {
    text += fmt::format("WQE {} B, {} cache line{}, by {}\n", prediction.wqe_bytes.value, prediction.wqe_lines,
                        prediction.wqe_lines == 1 ? "" : "s", method_name(prediction.method));
  }
  const auto row = [&](std::string_view name, double value) {
    text += fmt::format("  {:<26}{:>11.4f}\n", name, value);
  };
  text += "PCIe, per operation\n";
  PciePerOp::each(prediction.pcie, row);
  text += "CPU, per operation\n";
  CpuStores::each(prediction.cpu, row);
  text += "bounds, Mops\n";
  for (const RateBound& bound : prediction.bounds) {
    const bool binds = bound.resource == prediction.binding;
    text += fmt::format("  {:<26}{:>11.2f}{}\n", bound.resource, bound.mops, binds ? "  binding" : "");
  }
  return text;
}

std::string format_table(const WqePrediction& prediction) {
  std::string text =
      fmt::format("{}: {} WQEs of {} B, {} cache line{} each\n", prediction.cluster, prediction.wqes,
                  prediction.wqe_bytes.value, prediction.lines_per_wqe, prediction.lines_per_wqe == 1 ? "" : "s");
  const auto row = [&](std::string_view name, double value, std::string_view unit, int digits) {
    text += fmt::format("  {:<34}{:>11.{}f} {}\n", name, value, digits, unit);
  };
  row("CPU to NIC, WQE-by-MMIO", static_cast<double>(prediction.mmio_bytes_to_nic.value), "B", 0);
  row("CPU to NIC, one doorbell", static_cast<double>(prediction.doorbell_bytes_to_nic.value), "B", 0);
  row("useful DMA read bandwidth", prediction.dma_read_mb_per_s, "MB/s", 2);
  row("write-combined lines", prediction.mmio_lines_per_us, "M/s", 2);
  row("limit by DMA reads", prediction.dma_read_limit_mops, "Mops", 2);
  row("limit by WQE-by-MMIO", prediction.mmio_limit_mops, "Mops", 2);
  return text;
}

}  // namespace verbscope
