leasehold_test(postgres_fence_conformance_live_test
  SOURCES fence_conformance_live_test.cc
  LIBS leasehold::postgres leasehold_fence_conformance leasehold_postgres_rig PostgreSQL::PostgreSQL
  PRIVATE_HEADERS_OF adapters/postgres/src
  WHOLE TIMEOUT 600)
leasehold_test(postgres_fence_live_test
  SOURCES fence_live_test.cc fence_again_live_test.cc fence_forms_live_test.cc fence_readers_live_test.cc fence_sweep_live_test.cc guard_live_test.cc claim_live_test.cc pooler_live_test.cc row_fence_live_test.cc schema_live_test.cc search_path_live_test.cc
  LIBS leasehold::postgres leasehold_postgres_rig leasehold_test_support leasehold_fence_cases PostgreSQL::PostgreSQL
  WHOLE PARTS 2 TIMEOUT 600)

leasehold_test(postgres_patterns_live_test
  SOURCES fenced_once_live_test.cc once_live_test.cc versioned_row_live_test.cc patterns_live_test.cc
  LIBS leasehold::postgres leasehold_patterns_conformance leasehold_postgres_rig PostgreSQL::PostgreSQL
  WHOLE TIMEOUT 600)

leasehold_test(postgres_outbox_live_test
  SOURCES outbox_live_test.cc
  LIBS leasehold::postgres leasehold_outbox_conformance leasehold_postgres_rig PostgreSQL::PostgreSQL
  WHOLE TIMEOUT 600)

add_executable(leasehold_postgres_serial_worker serial_worker.cc)
target_include_directories(leasehold_postgres_serial_worker PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(leasehold_postgres_serial_worker
                      PRIVATE leasehold::postgres PostgreSQL::PostgreSQL leasehold_options)
leasehold_test(postgres_serial_queue_live_test
  SOURCES serial_queue_live_test.cc
  LIBS leasehold::postgres leasehold_postgres_rig PostgreSQL::PostgreSQL
  WHOLE TIMEOUT 600)
target_compile_definitions(postgres_serial_queue_live_test PRIVATE
  LEASEHOLD_SERIAL_WORKER="$<TARGET_FILE:leasehold_postgres_serial_worker>")
add_dependencies(postgres_serial_queue_live_test leasehold_postgres_serial_worker)
