# Run by cpack when the files of all packages are laid out: what Debian wants of each, and an installation has not.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
set(CMAKE_EXECUTE_PROCESS_COMMAND_ERROR_IS_FATAL ANY)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  set(doc ${root}/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  file(COPY ${CPACK_LEASEHOLD_TEXTS}/ DESTINATION ${doc}
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
       DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
  file(GLOB_RECURSE to_compress ${doc}/changelog ${root}/share/man/*.1)
  execute_process(COMMAND gzip -9 -n ${to_compress})
  file(GLOB libraries ${root}/lib/*.a)
  if(libraries)
    execute_process(COMMAND ${CPACK_STRIP} --strip-debug --enable-deterministic-archives ${libraries})
  endif()
endforeach()
