// incast_rate as a program on simulated networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::refusal_of;
using test::result_of;
using testing::HasSubstr;

}  // namespace
}  // namespace verbscope
