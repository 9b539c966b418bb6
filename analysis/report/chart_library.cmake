# Runs at every build: makes OUTPUT a copy of FETCHED, or empty where that is not, touching it only when it changed.
if(EXISTS "${FETCHED}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different "${FETCHED}" "${OUTPUT}" COMMAND_ERROR_IS_FATAL ANY)
else()
  file(WRITE "${OUTPUT}.empty" "")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different "${OUTPUT}.empty" "${OUTPUT}" COMMAND_ERROR_IS_FATAL ANY)
endif()
