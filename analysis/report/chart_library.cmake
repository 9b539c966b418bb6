# Runs at every build: copies FETCHED to OUTPUT, or makes an empty OUTPUT if FETCHED does not exist. Writes OUTPUT only
# if its content changes.
if(EXISTS "${FETCHED}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different "${FETCHED}" "${OUTPUT}" COMMAND_ERROR_IS_FATAL ANY)
else()
  file(WRITE "${OUTPUT}.empty" "")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different "${OUTPUT}.empty" "${OUTPUT}" COMMAND_ERROR_IS_FATAL ANY)
endif()
