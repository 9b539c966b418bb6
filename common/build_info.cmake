# Runs at every build: writes OUTPUT from build_info.cpp.in if the content has changed.
# In: SOURCE_DIR, OUTPUT, version, build_type, compiler, flags.

set(git_revision unknown)
find_program(git git)
if(git AND EXISTS "${SOURCE_DIR}/.git")  # a tarball inside another checkout does not have its revision
  execute_process(COMMAND ${git} -C "${SOURCE_DIR}" describe --always --abbrev=12 --dirty --match=
                  OUTPUT_VARIABLE described RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND described)
    set(git_revision "${described}")
  endif()
endif()
string(STRIP "${flags}" flags)
configure_file("${CMAKE_CURRENT_LIST_DIR}/build_info.cpp.in" "${OUTPUT}" @ONLY)
