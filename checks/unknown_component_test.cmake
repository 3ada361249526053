# A component that is not there is refused by name, with the list of those that are.
set(source ${SCRATCH}/unknown_component)
file(REMOVE_RECURSE ${source})
file(WRITE ${source}/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(unknown_component LANGUAGES CXX)
find_package(leasehold QUIET OPTIONAL_COMPONENTS abacus)
if(NOT leasehold_FOUND OR leasehold_abacus_FOUND)
  message(FATAL_ERROR "an optional component that is missing should be no error")
endif()
message("optional: ok")
find_package(leasehold REQUIRED COMPONENTS core abacus)
]])
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${source} -B ${source}/build -G ${GENERATOR}
          -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_CXX_COMPILER=${CXX}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
foreach(sentence IN ITEMS "optional: ok"
        "leasehold has no component 'abacus'; this installation has: core, ")
  string(FIND "${output}" "${sentence}" at)
  if(status EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "expected a failure that says \"${sentence}\", got ${status}:\n${output}")
  endif()
endforeach()
