add_library(leasehold_fence_cases STATIC ${CMAKE_CURRENT_LIST_DIR}/fence_cases.cc)
target_include_directories(leasehold_fence_cases PUBLIC ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(leasehold_fence_cases PUBLIC leasehold::fence)
leasehold_test_code(leasehold_fence_cases)

# The suite that every fence's tests link. An object library: a static one would drop the cases,
# since nobody refers to them.
add_library(leasehold_fence_conformance OBJECT ${CMAKE_CURRENT_LIST_DIR}/fence_conformance.cc)
target_include_directories(leasehold_fence_conformance PUBLIC ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(leasehold_fence_conformance
                      PUBLIC leasehold_fence_cases GTest::gmock leasehold_options)
leasehold_test_code(leasehold_fence_conformance)
