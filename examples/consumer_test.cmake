# Builds the consumer against the install tree in PREFIX, runs it twice, and compares the tokens.
set(CMAKE_EXECUTE_PROCESS_COMMAND_ECHO STDOUT)
set(build ${SCRATCH}/consumer)
file(REMOVE_RECURSE ${build})

execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND
  ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${build} -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_CXX_COMPILER=${CXX})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${build})

foreach(token IN ITEMS first second)
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${build}/consumer ${build}/locks.db
                  OUTPUT_VARIABLE ${token} OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT ${token} MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "not a token: '${${token}}'")
  endif()
endforeach()
if(NOT second GREATER first)
  message(FATAL_ERROR "the token did not grow: ${first}, then ${second}")
endif()
message(STATUS "tokens ${first}, then ${second}")
