#include "wire/link_type.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

NicFamily nic_family_from(std::string_view text) {
  return value_named(kFamilies, "NIC family", text);
}
LinkType link_type_from(std::string_view text) {
  return value_named(kLinkTypes, "link type", text);
}
Transport transport_from(std::string_view text) {
  return value_named(kTransports, "transport", text);
}
Verb verb_from(std::string_view text) {
  return value_named(kVerbs, "verb", text);
}

}  // namespace verbscope
