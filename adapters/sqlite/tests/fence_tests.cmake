leasehold_test(sqlite_fence_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/fence_test.cc ${CMAKE_CURRENT_LIST_DIR}/fence_conformance_test.cc
  LIBS leasehold::sqlite leasehold_fence_conformance SQLite::SQLite3
  PRIVATE_HEADERS_OF adapters/sqlite/src)

leasehold_test(sqlite_fence_sweep_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/fence_readers_test.cc ${CMAKE_CURRENT_LIST_DIR}/fence_sweep_test.cc
  LIBS leasehold::sqlite leasehold_test_support SQLite::SQLite3
  PRIVATE_HEADERS_OF adapters/sqlite/src)

leasehold_test(sqlite_fence_admin_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/fence_admin_test.cc
  LIBS leasehold::sqlite leasehold_test_support SQLite::SQLite3
  PRIVATE_HEADERS_OF adapters/sqlite/src)

leasehold_test(sqlite_once_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/once_test.cc
  LIBS leasehold::sqlite leasehold_test_support SQLite::SQLite3
  PRIVATE_HEADERS_OF adapters/sqlite/src)

leasehold_test(sqlite_fence_forms_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/claim_test.cc ${CMAKE_CURRENT_LIST_DIR}/fence_forms_test.cc ${CMAKE_CURRENT_LIST_DIR}/guard_test.cc ${CMAKE_CURRENT_LIST_DIR}/row_fence_test.cc
  LIBS leasehold::sqlite leasehold_test_support SQLite::SQLite3)

leasehold_test(sqlite_patterns_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/fenced_once_test.cc ${CMAKE_CURRENT_LIST_DIR}/patterns_test.cc
  LIBS leasehold::sqlite leasehold_patterns_conformance SQLite::SQLite3)

leasehold_test(sqlite_outbox_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/outbox_test.cc
  LIBS leasehold::sqlite leasehold_outbox_conformance SQLite::SQLite3)
