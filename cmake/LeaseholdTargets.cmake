# How every target of this project is made, so that it is made the same way everywhere.

find_program(LEASEHOLD_CCACHE ccache)
if(PROJECT_IS_TOP_LEVEL AND LEASEHOLD_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LEASEHOLD_CCACHE})
  if(LEASEHOLD_PRECOMPILE)
    # Without these it takes nothing that was compiled with a precompiled header.
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
endif()

include(LeaseholdPkgConfig)

set(LEASEHOLD_ADAPTERS "" CACHE INTERNAL "adapters in this build")

add_library(leasehold_options INTERFACE)
target_compile_features(leasehold_options INTERFACE cxx_std_20)
target_include_directories(leasehold_options INTERFACE ${PROJECT_SOURCE_DIR})  # for kit/
target_compile_options(leasehold_options INTERFACE -pthread)
if(CMAKE_UNITY_BUILD)
  # Of sources that are compiled together, one may well have a local name that stands at the top of another.
  target_compile_options(leasehold_options INTERFACE -Wno-shadow)
endif()
if(LEASEHOLD_SANITIZE)
  target_compile_options(leasehold_options INTERFACE -fsanitize=${LEASEHOLD_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # clang 14 cannot assemble coroutines with this one.
    target_compile_options(leasehold_options INTERFACE -fno-sanitize=function)
    # What gcc says by itself; libstdc++ listens to it too.
    if(LEASEHOLD_SANITIZE MATCHES "address")
      target_compile_definitions(leasehold_options INTERFACE __SANITIZE_ADDRESS__)
      target_compile_options(leasehold_options INTERFACE
                             -fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/not_instrumented.txt)
    elseif(LEASEHOLD_SANITIZE MATCHES "thread")
      target_compile_definitions(leasehold_options INTERFACE __SANITIZE_THREAD__)
    endif()
  endif()
  target_link_options(leasehold_options INTERFACE -fsanitize=${LEASEHOLD_SANITIZE})
endif()

# leasehold_precompile(library|program|test <target>...): spares the targets the reading of the headers that
# nearly every file includes, if LEASEHOLD_PRECOMPILE is on. A library's code is position-independent, so it
# cannot share with a program; tests have GoogleMock besides. The shipped build does without, and so finds a
# forgotten include. So do those with -O2: gcc then takes the warnings of the library's headers for ours.
function(leasehold_precompile kind)
  # Then a program's own files are compiled with -fPIE, and what it shares with -fPIC.
  if(NOT LEASEHOLD_PRECOMPILE OR (CMAKE_POSITION_INDEPENDENT_CODE AND NOT kind STREQUAL library))
    return()
  endif()
  set(source leasehold_precompiled_${kind})
  if(NOT TARGET ${source})
    set(folder ${PROJECT_SOURCE_DIR}/cmake/precompiled)
    set(header common.h)
    add_library(${source} OBJECT ${folder}/empty.cc)
    target_link_libraries(${source} PRIVATE tl::expected leasehold_options)
    if(kind STREQUAL library)
      set_target_properties(${source} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    elseif(kind STREQUAL test)
      target_link_libraries(${source} PRIVATE GTest::gmock)
      set(header test.h)
    endif()
    target_precompile_headers(${source} PRIVATE ${folder}/${header})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      target_compile_options(${source} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${source})
  endforeach()
endfunction()

# What only tests are made of compiles in two thirds of the time without these: checks for what a crash would
# tell as well, and line numbers in a sanitizer's report. The libraries have them. To be linked after
# leasehold_options, which would switch them on again.
add_library(leasehold_test_options INTERFACE)
if(LEASEHOLD_SANITIZE)
  target_compile_options(leasehold_test_options INTERFACE -g0)
endif()
if(LEASEHOLD_SANITIZE MATCHES "undefined")
  target_compile_options(leasehold_test_options INTERFACE -fno-sanitize=null,alignment,vptr)
endif()

# leasehold_test_code(<target>...): they are compiled as tests are.
function(leasehold_test_code)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE leasehold_options leasehold_test_options)
  endforeach()
  leasehold_precompile(test ${ARGN})
endfunction()

# leasehold_library(<name> SOURCES ... [PUBLIC deps] [PRIVATE deps] [INTERNAL | PRIVATE_HEADERS] [OPTIMISED] [APART])
# Makes target leasehold_<name> with alias leasehold::<name>. Public headers are in ./include,
# installed unless the library is INTERNAL, or has PRIVATE_HEADERS: then only what others link. OPTIMISED: in every build, because tests hand it millions of things.
# APART: its sources are compiled one by one also where others are compiled together (CMAKE_UNITY_BUILD), because
# several of them have the same name for a thing of their own.
function(leasehold_library name)
  cmake_parse_arguments(arg "INTERNAL;PRIVATE_HEADERS;OPTIMISED;APART" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target leasehold_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(leasehold::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  set_target_properties(${target} PROPERTIES LEASEHOLD_PRIVATE_HEADERS "${arg_PRIVATE_HEADERS}")
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC}
                        PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:leasehold_options>)
  if(arg_APART)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(arg_OPTIMISED)
    target_compile_options(${target} PRIVATE -O2)
  else()
    leasehold_precompile(library ${target})
  endif()
  if(NOT arg_INTERNAL)
    install(TARGETS ${target} EXPORT leasehold-${name}
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
    if(NOT arg_PRIVATE_HEADERS AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/include)
      install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
              FILES_MATCHING PATTERN "*.h")
    endif()
    install(EXPORT leasehold-${name} NAMESPACE leasehold:: COMPONENT development
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/leasehold)
    leasehold_pkg_config(${name} ${arg_PUBLIC} ${arg_PRIVATE})
  endif()
endfunction()

# leasehold_module(<target> FILE name OF technology SOURCES ... LIBS ...)
# What the program loads when it needs it, from LIBDIR/leasehold; installed with its technology. It carries the core
# code that it uses, and shows nothing but its entry.
function(leasehold_module target)
  cmake_parse_arguments(arg "" "FILE;OF" "SOURCES;LIBS" ${ARGN})
  add_library(${target} MODULE ${arg_SOURCES})
  target_compile_definitions(${target} PRIVATE LEASEHOLD_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${target} PRIVATE ${arg_LIBS} leasehold_options)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${arg_FILE} CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}/leasehold)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/leasehold COMPONENT ${arg_OF})
endfunction()

# What every adapter may use: installed with any of them.
set(LEASEHOLD_SHARED_LIBRARIES store_base waiting net fence patterns sql doctor)

# leasehold_adapter(<name> [IN folder] [MODULE] [USES library...] [NEEDS package...])
# Adds adapters/<name>, or the folder, if LEASEHOLD_WITH_<NAME> is on; what is in it, description.h there tells. Its
# folder rig/ has its test server, if it has one.
# MODULE: the program loads it when one of its schemes is first used. USES: other libraries of this project that are
# installed with it. NEEDS: what find_package(leasehold COMPONENTS <name>) must find as well.
macro(leasehold_adapter name)
  cmake_parse_arguments(leasehold_adapter "MODULE" "IN" "USES;NEEDS" ${ARGN})
  set(LEASEHOLD_FOLDER_OF_${name} adapters/${name})
  if(leasehold_adapter_IN)
    set(LEASEHOLD_FOLDER_OF_${name} ${leasehold_adapter_IN})
  endif()
  string(TOUPPER ${name} leasehold_upper)
  option(LEASEHOLD_WITH_${leasehold_upper} "Build ${LEASEHOLD_FOLDER_OF_${name}}" ${LEASEHOLD_WITH_ALL})
  if(LEASEHOLD_WITH_${leasehold_upper})
    foreach(leasehold_used IN LISTS leasehold_adapter_USES)
      if(NOT TARGET leasehold_${leasehold_used})
        add_subdirectory(${leasehold_used})
      endif()
    endforeach()
    add_subdirectory(${LEASEHOLD_FOLDER_OF_${name}})
    if(TARGET leasehold_rig AND EXISTS ${PROJECT_SOURCE_DIR}/${LEASEHOLD_FOLDER_OF_${name}}/rig)
      add_subdirectory(${LEASEHOLD_FOLDER_OF_${name}}/rig)
    endif()
    list(APPEND LEASEHOLD_ADAPTERS ${name})
    if(leasehold_adapter_MODULE)
      list(APPEND LEASEHOLD_MODULES ${name})
    endif()
    list(APPEND LEASEHOLD_USED_LIBRARIES ${LEASEHOLD_SHARED_LIBRARIES} ${leasehold_adapter_USES})
    list(REMOVE_DUPLICATES LEASEHOLD_USED_LIBRARIES)
    string(APPEND LEASEHOLD_ADAPTER_NEEDS
           "set(leasehold_uses_${name} ${LEASEHOLD_SHARED_LIBRARIES} ${leasehold_adapter_USES})\n"
           "set(leasehold_needs_${name} ${leasehold_adapter_NEEDS})\n")
  else()
    list(APPEND LEASEHOLD_LEFT_OUT ${name})
  endif()
endmacro()

# leasehold_test(<name> SOURCES ... LIBS ... [PRIVATE_HEADERS_OF dir] [TIMEOUT s] [SERIAL] [WHOLE [PARTS n]])
# A GoogleTest program; each of its cases is one ctest. WHOLE: the program is one ctest, so that its
# cases can share a server that is slow to start. PARTS: n of them, each with some of the cases, where they
# wait so long that they should do it side by side.
function(leasehold_test name)
  cmake_parse_arguments(arg "SERIAL;WHOLE" "TIMEOUT;PRIVATE_HEADERS_OF;PARTS" "SOURCES;LIBS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gmock_main)
  leasehold_test_code(${name})
  if(arg_PRIVATE_HEADERS_OF)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/${arg_PRIVATE_HEADERS_OF})
  endif()
  # What may take longest begins first. The label is the folder of what is tested.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "/tests$" "" folder ${folder})
  set(properties TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT} LABELS ${folder})
  if(arg_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  if(arg_WHOLE AND arg_PARTS)
    foreach(part RANGE 1 ${arg_PARTS})
      math(EXPR index "${part} - 1")
      add_test(NAME ${name}:${part}of${arg_PARTS} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${name}:${part}of${arg_PARTS} PROPERTIES ${properties}
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index}")
    endforeach()
    return()
  elseif(arg_WHOLE)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES ${properties})
    return()
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}: DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES ${properties})
endfunction()

function(leasehold_install_package)
  include(CMakePackageConfigHelpers)
  foreach(library IN LISTS LEASEHOLD_SHARED_LIBRARIES)
    string(APPEND LEASEHOLD_ADAPTER_NEEDS "set(leasehold_uses_${library} ${LEASEHOLD_SHARED_LIBRARIES})\n")
  endforeach()
  configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/leasehold-config.cmake.in
    ${PROJECT_BINARY_DIR}/leasehold-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/leasehold)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/leasehold-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/leasehold-config.cmake
                ${PROJECT_BINARY_DIR}/leasehold-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/leasehold COMPONENT development)
endfunction()
