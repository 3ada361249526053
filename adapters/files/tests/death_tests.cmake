# Killed or frozen after each of its system calls.
leasehold_test(files_interrupted_test
  SOURCES interrupted_test.cc stepped_child.cc
  LIBS leasehold::files leasehold_test_support
  TIMEOUT 300)

leasehold_test(files_power_loss_test
  SOURCES power_loss_test.cc
  LIBS leasehold::files leasehold_test_support
  TIMEOUT 300)
leasehold_record_disk(files_power_loss_test)
