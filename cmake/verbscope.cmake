# What every target of verbscope shares: language level, warnings, output folders, and the two ways to declare one.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
option(VERBSCOPE_SOURCES_ALONE "Compile each source alone, to see that it includes what it uses" OFF)
if(VERBSCOPE_SOURCES_ALONE)
  set(CMAKE_UNITY_BUILD OFF)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_library(verbscope_flags INTERFACE)
option(VERBSCOPE_WERROR "Warnings are errors: for those who work on verbscope, whose compilers are known" OFF)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual)
if(VERBSCOPE_WERROR)
  list(APPEND warnings -Werror)
endif()
target_compile_options(verbscope_flags INTERFACE "$<BUILD_INTERFACE:${warnings}>")
target_include_directories(verbscope_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                     $<INSTALL_INTERFACE:include/verbscope>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
  target_compile_definitions(verbscope_flags INTERFACE FMT_CONSTEVAL=)  # its consteval refuses good format strings
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=([a-z-]*,)?address")
  target_compile_definitions(verbscope_flags INTERFACE VERBSCOPE_ADDRESS_SANITIZER)
elseif(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  target_compile_definitions(verbscope_flags INTERFACE VERBSCOPE_THREAD_SANITIZER)
endif()

# LLVM's linker takes a third of the time of the other for these programs.
find_program(VERBSCOPE_LLD ld.lld)
if(VERBSCOPE_LLD)
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -fuse-ld=lld")
endif()

# The large headers of other projects, compiled once: most of the time of building a small source. CLI11 is not among them:
# each source that sees it constructs its validators anew, which takes 3 s of -O2.
file(WRITE ${PROJECT_BINARY_DIR}/project_headers.cpp "// compiled for its precompiled headers only\n")
add_library(project_headers OBJECT ${PROJECT_BINARY_DIR}/project_headers.cpp)
target_link_libraries(project_headers PRIVATE verbscope_flags fmt::fmt nlohmann_json::nlohmann_json)
target_precompile_headers(project_headers PRIVATE <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp> <atomic>
                          <chrono> <filesystem> <fstream> <thread>)

# verbscope_pkg_config(PREFIX module): a library that pkg-config knows, as PkgConfig::PREFIX, here and for those who link an
# installed verbscope.
function(verbscope_pkg_config prefix module)
  pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  set_property(GLOBAL APPEND_STRING PROPERTY VERBSCOPE_PKG_CONFIG_MODULES
               "pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${module})\n")
endfunction()

# verbscope_library(NAME [OWN_OPTIONS] SOURCES a.cpp ... LINK other ...): a static library with the project's flags.
# OWN_OPTIONS: it is compiled with others, so that it cannot use the precompiled headers.
function(verbscope_library name)
  cmake_parse_arguments(ARG "OWN_OPTIONS" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC verbscope_flags ${ARG_LINK})
  if(NOT ARG_OWN_OPTIONS)
    target_precompile_headers(${name} REUSE_FROM project_headers)
  endif()
endfunction()

# What a user runs, without the tests: what `quickstart` builds.
add_custom_target(programs)

# verbscope_binary(NAME SOURCES a.cpp ... LINK other ...): an executable in build/bin, one of the programs.
function(verbscope_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE verbscope_flags ${ARG_LINK})
  target_precompile_headers(${name} REUSE_FROM project_headers)
  add_dependencies(programs ${name})
endfunction()

# verbscope_benchmark(NAME SOURCES a.cpp ... [TEST microbench/a_test.cpp] LINK other ...): one of the programs, a
# benchmark. This call is the only place that lists it: the harness is compiled with the names of all benchmarks, and
# test_benchmarks_sim contains their tests (files in tests/ that run programs). Tests that run programs depend on all
# benchmarks.
function(verbscope_benchmark name)
  cmake_parse_arguments(ARG "" "TEST" "SOURCES;LINK" ${ARGN})
  verbscope_binary(${name} SOURCES ${ARG_SOURCES} LINK ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY VERBSCOPE_BENCHMARKS ${name})
  set_property(GLOBAL APPEND PROPERTY VERBSCOPE_BENCHMARK_TESTS ${ARG_TEST})
endfunction()

# The code of the tests themselves needs no optimisation, and takes minutes longer to build with it.
set(VERBSCOPE_TEST_OPTIONS "" CACHE STRING "Further compiler options for the sources of tests")

set(VERBSCOPE_TEST_TIERS "unit;sim" CACHE STRING
    "The tiers whose test binaries are built; those that say EVERY_BUILD are built whatever stands here")

# verbscope_test(NAME TIER unit|sim [EVERY_BUILD] [SECONDS n] SOURCES a.cpp ... THREADS b.cpp ... LINK lib ... RUNS program ...): a
# GoogleTest binary in build/tests, which is one test of ctest with the tier as its label: starting a process costs more than most cases. In
# the sources after THREADS threads of one process share memory: a binary that has some carries the label `threads` as
# well, and under ThreadSanitizer it is made of them alone. RUNS: the programs that its cases start. SECONDS: about how long
# one that lasts takes, for ctest to start the longest first where it has not run them yet.
function(verbscope_test name)
  cmake_parse_arguments(ARG "EVERY_BUILD" "TIER;SECONDS" "SOURCES;THREADS;LINK;RUNS" ${ARGN})
  if(NOT ARG_TIER IN_LIST VERBSCOPE_TEST_TIERS AND NOT ARG_EVERY_BUILD)
    return()
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
    if(NOT ARG_THREADS)
      return()
    endif()
    set(ARG_SOURCES)
  endif()
  add_executable(${name} ${ARG_SOURCES} ${ARG_THREADS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE VERBSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             VERBSCOPE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE verbscope_flags ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM test_headers)
  target_compile_options(${name} PRIVATE ${VERBSCOPE_TEST_OPTIONS})
  if(ARG_RUNS)
    add_dependencies(${name} ${ARG_RUNS})
  endif()
  set(labels ${ARG_TIER})
  if(ARG_THREADS)
    list(APPEND labels threads)
    add_dependencies(threaded_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 1200)
  if(ARG_SECONDS)
    set_tests_properties(${name} PROPERTIES COST ${ARG_SECONDS})
  endif()
endfunction()

# verbscope_callgrind_test(NAME BUDGET 15 LOOP regex NOT_COUNTED regex OPERATIONS few many COMMAND program ... -n @N@): a
# ctest test with the label `callgrind` that fails when the functions that match LOOP cost more than BUDGET instructions an
# operation (tests/perf/callgrind_budget.py). @N@ stands for the number of operations. With VARY few many the budget is for
# the ratio of what an operation costs with `many` and with `few` in the place of @V@. With NOT_COUNTED_FILE regex the lines of
# such sources do not count.
function(verbscope_callgrind_test name)
  cmake_parse_arguments(ARG "" "BUDGET;LOOP;NOT_COUNTED;NOT_COUNTED_FILE" "OPERATIONS;VARY;COMMAND" ${ARGN})
  if(ARG_VARY)
    list(PREPEND ARG_VARY --vary)
  endif()
  if(ARG_NOT_COUNTED_FILE)
    list(APPEND ARG_VARY --not-counted-file ${ARG_NOT_COUNTED_FILE})
  endif()
  add_test(NAME ${name}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/perf/callgrind_budget.py --budget ${ARG_BUDGET} --loop ${ARG_LOOP}
                   --not-counted ${ARG_NOT_COUNTED} --operations ${ARG_OPERATIONS} ${ARG_VARY} -- ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS callgrind SKIP_RETURN_CODE 77 TIMEOUT 300)
endfunction()
