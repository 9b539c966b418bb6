#include "common/enum_table.hpp"

#include <gmock/gmock.h>

namespace verbscope {
namespace {

enum class Fruit { apple, pear, plum };
struct Colour {
  Fruit value;
  std::string_view name;
};

TEST(EnumTables, HaveTheLengthAndOrderOfTheEnum) {
  static_assert(enum_count<Fruit>() == 3);
  static_assert(in_order(EnumTable<Fruit, Colour>{{{Fruit::apple, "red"}, {Fruit::pear, "green"}, {Fruit::plum, ""}}}));
  static_assert(!in_order(EnumTable<Fruit, Colour>{{{Fruit::apple, "red"}, {Fruit::pear, "green"}}}),
                "one is left out");
  static_assert(!in_order(EnumTable<Fruit, Colour>{{{Fruit::pear, ""}, {Fruit::apple, ""}, {Fruit::plum, ""}}}));
}

TEST(EnumTables, FindRowsByEnumeratorAndName) {
  constexpr EnumTable<Fruit, Colour> kColours{{{Fruit::apple, "red"}, {Fruit::pear, "green"}, {Fruit::plum, "blue"}}};
  EXPECT_EQ(row_of(kColours, Fruit::pear).name, "green");
  EXPECT_EQ(value_named(kColours, "colour", "blue"), Fruit::plum);
  EXPECT_THAT([&] { value_named(kColours, "colour", "pink"); },
              testing::ThrowsMessage<Error>("colour 'pink' is unknown: one of red, green, blue"));
  EXPECT_THAT(names_and_values(kColours), testing::Contains(testing::Pair("red", Fruit::apple)));
  EXPECT_THAT(make_enum_table<Fruit>([](Fruit fruit) { return static_cast<int>(fruit); }),
              testing::ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace verbscope
