# What cpack makes of an installation: Debian packages of the program, of each module and for development (-G DEB), and
# a folder that runs where it is unpacked (-G TGZ). packages/ has what differs between the two, and what Debian wants
# besides.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(LEASEHOLD_PACKAGE_CONTACT "Leasehold maintainers <maintainers@leasehold.invalid>" CACHE STRING
    "Who maintains the Debian packages that are built here")

# leasehold_package(<component> <package> SUMMARY text TEXT text [FIELD value]...)
# The fields are those of CPACK_DEBIAN_<COMPONENT>_PACKAGE_...
function(leasehold_package component package)
  cmake_parse_arguments(arg "" "SUMMARY;TEXT;SECTION;DEPENDS;RECOMMENDS;SUGGESTS;ENHANCES" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${arg_SUMMARY}\n${arg_TEXT}" PARENT_SCOPE)
  foreach(field IN ITEMS SECTION DEPENDS RECOMMENDS SUGGESTS ENHANCES)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${arg_${field}}" PARENT_SCOPE)
  endforeach()
endfunction()

set(CPACK_PACKAGE_NAME leasehold)
set(CPACK_PACKAGE_CONTACT ${LEASEHOLD_PACKAGE_CONTACT})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/packages/kinds.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages/debian.cmake)
set(CPACK_STRIP ${CMAKE_STRIP})
set(CPACK_COMPONENTS_ALL "")

# The folder is for machines like the one that it is built on.
cmake_host_system_information(RESULT system QUERY DISTRIB_INFO)
set(CPACK_PACKAGE_FILE_NAME
    leasehold-${PROJECT_VERSION}-${system_ID}${system_VERSION_ID}-${CMAKE_SYSTEM_PROCESSOR})

# The same version: standard library types cross the border between program and module.
set(same_version "leasehold (= ${PROJECT_VERSION})")
set(suggested curl)
foreach(technology IN LISTS LEASEHOLD_MODULES)
  file(STRINGS ${LEASEHOLD_FOLDER_OF_${technology}}/description.h title REGEX "\\.title = " LIMIT_COUNT 1)
  string(REGEX REPLACE "^.*\"(.*)\".*$" "\\1" title "${title}")
  string(REPLACE _ - package leasehold-${technology})
  list(APPEND suggested ${package})
  leasehold_package(${technology} ${package} SECTION utils DEPENDS ${same_version} ENHANCES leasehold
    SUMMARY "distributed locks with fencing tokens - ${title}"
    TEXT "The module with which the leasehold program keeps locks in ${title},
and fences what is there.")
endforeach()
list(JOIN suggested ", " suggested)

leasehold_package(program leasehold SECTION utils SUGGESTS "${suggested}"
  SUMMARY "distributed locks with fencing tokens"
  TEXT "Runs a command while it holds a lock that ends by itself when the holder
dies (a lease), and gives it a numbered token with which the resource can
refuse a late writer (a fence). Locks live in a file of this machine, or in a
server: further packages bring the modules for that. Tells what makes a lock
lie, and freezes and kills real holders to show what happens then.")

# What only one adapter needs is recommended, so that a program with another one can do without.
file(STRINGS scripts/packages.txt needed REGEX "^stores: ")
string(REGEX MATCHALL "lib[^ ]+-dev" needed "${needed}")
list(REMOVE_ITEM needed libasio-dev)  # compiled in; leasehold/asio.h is for who has it
list(JOIN needed ", " needed)
leasehold_package(development libleasehold-dev SECTION libdevel
  DEPENDS "libc6-dev, libexpected-dev, libsqlite3-dev" RECOMMENDS "${needed}" SUGGESTS libasio-dev
  SUMMARY "distributed locks with fencing tokens - C++20 library"
  TEXT "Headers, static libraries, the CMake package and pkg-config files of
Leasehold: leases, fences, and what can be built on them.")

string(TIMESTAMP LEASEHOLD_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(TIMESTAMP LEASEHOLD_PACKAGE_YEAR "%Y" UTC)
foreach(text IN ITEMS changelog copyright)
  configure_file(cmake/packages/${text}.in ${PROJECT_BINARY_DIR}/packages/${text} @ONLY)
endforeach()
set(CPACK_LEASEHOLD_TEXTS ${PROJECT_BINARY_DIR}/packages)

include(CPack)
