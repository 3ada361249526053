# asio is headers only, and has neither a CMake nor a pkg-config file. It does not know that clang has
# coroutines too. The gate is built with it, and with_asio is tested with it.
find_path(LEASEHOLD_ASIO_INCLUDE asio.hpp)
if(LEASEHOLD_ASIO_INCLUDE)
  add_library(leasehold_asio INTERFACE)
  target_include_directories(leasehold_asio SYSTEM INTERFACE ${LEASEHOLD_ASIO_INCLUDE})
  target_compile_definitions(leasehold_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED
    $<$<CXX_COMPILER_ID:Clang>:ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE>)
endif()
