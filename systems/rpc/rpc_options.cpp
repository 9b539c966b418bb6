#include "systems/rpc/rpc_options.hpp"

#include "common/error.hpp"
#include "verbs/port_speed.hpp"

namespace verbscope {

void add_control_option(OptionTable& table, RpcOptions& options) {
  table.choice<RpcControl>("--cc", options.control,
                           {{"none", RpcControl::none}, {"timely", RpcControl::timely}, {"dcqcn", RpcControl::dcqcn}},
                           "congestion control of the callers: by round trips, or by marks of Ethernet switches");
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
