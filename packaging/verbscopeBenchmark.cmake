# verbscope_benchmark(NAME SOURCES a.cpp ... [LINK other ...]): a benchmark outside of verbscope's tree, a program with the
# options, the exchange, the simulator and the record of all others. Its sources include headers as those in the tree do
# ("microbench/run/runner.hpp"); its main calls verbscope::benchmark_main.
function(verbscope_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE verbscope::vs_loop verbscope::vs_run ${ARG_LINK})
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()

# verbscope_service(NAME SOURCES a.cpp ... [LINK other ...]): a service on RPCs outside of verbscope's tree. Its sources include
# "systems/service/service.hpp"; its main calls verbscope::service_main.
function(verbscope_service name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE verbscope::vs_service ${ARG_LINK})
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()
