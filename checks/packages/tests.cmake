# What cpack makes of this build, used where nothing else of it is.
set(packages ${CMAKE_CURRENT_SOURCE_DIR}/packages)

# Whoever has pkg-config and no CMake, with all libraries at once.
add_test(NAME package:pkg_config
         COMMAND ${packages}/pkg_config_test.sh ${prefix} ${CMAKE_CXX_COMPILER}
                 ${CMAKE_CURRENT_BINARY_DIR}/pkg_config)
set_tests_properties(package:pkg_config PROPERTIES FIXTURES_REQUIRED install_tree TIMEOUT 120)

if(NOT TARGET leasehold OR NOT TARGET leasehold_drill_runner OR NOT LEASEHOLD_MODULES)
  return()
endif()
add_test(NAME package:systemd COMMAND ${packages}/systemd_test.sh ${PROJECT_SOURCE_DIR}/examples/systemd
                                      $<TARGET_FILE:leasehold>)

add_executable(leasehold_with_stores packages/with_stores.cc)
target_link_libraries(leasehold_with_stores PRIVATE leasehold_drill_runner leasehold_rig leasehold::process
                      leasehold_options)

add_test(NAME package:debian
         COMMAND ${packages}/debian_test.sh ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/debian
                 $<TARGET_FILE:leasehold_with_stores>)
add_test(NAME package:tarball
         COMMAND ${packages}/tarball_test.sh ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/tarball
                 $<TARGET_FILE:leasehold_with_stores>)
# One after the other: cpack writes into the build.
set_tests_properties(package:debian package:tarball PROPERTIES TIMEOUT 900 COST 900 RESOURCE_LOCK cpack)
