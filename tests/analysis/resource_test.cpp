// The table of resources.
#include "analysis/resource.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace verbscope {
namespace {

// Each resource occurs once, in the order of the enumeration, with the parameters or options of its capacity.
TEST(Resource, AllResourcesAreListedInOrder) {
  std::set<std::string_view> keys;
  for (const ResourceFacts& each : all_resources()) {
    EXPECT_EQ(&facts(each.resource), &each);
    EXPECT_TRUE(keys.insert(each.key).second) << each.key;
    EXPECT_EQ(capacity(capacity(each.resource)), capacity(each.resource));
    EXPECT_EQ(facts(each.capacity).doubled, each.doubled);
    EXPECT_TRUE(!is_option(each.resource) || !each.options.empty()) << each.key;
  }
}

}  // namespace
}  // namespace verbscope
