# Killed or frozen after each of its system calls.
leasehold_test(files_interrupted_test
  SOURCES interrupted_test.cc stepped_child.cc
  LIBS leasehold::files leasehold_test_support
  TIMEOUT 300)

# The library's system calls go through the recorder, in this program only.
leasehold_test(files_power_loss_test
  SOURCES power_loss_test.cc recorded_disk.cc
  LIBS leasehold::files leasehold_test_support
  TIMEOUT 300)
foreach(call IN ITEMS openat write fsync renameat linkat symlinkat mkdirat unlinkat)
  target_link_options(files_power_loss_test PRIVATE -Wl,--wrap=${call})
endforeach()
