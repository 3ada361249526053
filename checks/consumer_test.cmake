# Builds the consumer against the install tree in PREFIX, runs it twice, and compares what it prints.
set(CMAKE_EXECUTE_PROCESS_COMMAND_ECHO STDOUT)
set(build ${SCRATCH}/consumer)
file(REMOVE_RECURSE ${build})

execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND
  ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/../examples/consumer -B ${build} -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_CXX_COMPILER=${CXX})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${build})

foreach(run IN ITEMS 1 2)
  execute_process(COMMAND_ERROR_IS_FATAL ANY
                  COMMAND ${build}/consumer ${build}/locks.db ${build}/data.db
                  OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT said MATCHES "^token ([1-9][0-9]*), run ${run}$")
    message(FATAL_ERROR "not what run ${run} should say: '${said}'")
  endif()
  set(token_${run} ${CMAKE_MATCH_1})
endforeach()
if(NOT token_2 GREATER token_1)
  message(FATAL_ERROR "the token did not grow: ${token_1}, then ${token_2}")
endif()
message(STATUS "tokens ${token_1}, then ${token_2}")
