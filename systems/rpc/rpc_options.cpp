#include "systems/rpc/rpc_options.hpp"

#include "common/error.hpp"
#include "common/record.hpp"
#include "verbs/port_speed.hpp"

namespace verbscope {

void add_control_option(OptionTable& table, RpcOptions& options) {
  table.choice<RpcControl>("--cc", options.control,
                           {{"none", RpcControl::none}, {"timely", RpcControl::timely}, {"dcqcn", RpcControl::dcqcn}},
                           "congestion control of the callers: by round trips, or by marks of Ethernet switches");
}

void add_loss_option(OptionTable& table, std::optional<double>& loss) {
  table.number("--loss", loss, "sim: share of packets that the network loses (default: the profile's)");
}

void check_loss(std::optional<double> loss, const std::string& fabric) {
  if (!loss) return;
  if (!is_simulated(fabric)) {
    fail_usage(
        "--loss {:g}: only with --fabric sim:NAME; on hosts use tc netem, such as tc qdisc add dev DEV root netem "
        "loss {:g}%",
        *loss, *loss * 100);
  }
  if (*loss > 1) fail_usage("--loss {:g}: expected a share of packets, at most 1", *loss);
}

RpcOptions for_port_of(const Device& device, RpcOptions options) {
  const ibv_port_attr& port = device.port_attributes();
  options.timely.link = options.dcqcn.line = port_rate(port);
  if (options.control == RpcControl::dcqcn && port.link_layer != IBV_LINK_LAYER_ETHERNET) {
    fail_usage("--cc dcqcn: {} is an InfiniBand device; only switches of Ethernet mark packets", device.name());
  }
  if (options.control != RpcControl::none && !(options.timely.link.value > 0)) {
    fail_usage("--cc: {} does not state the speed of its port", device.name());
  }
  return options;
}

}  // namespace verbscope
