#include "leasehold/process/io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "leasehold/process/terminal.h"

namespace leasehold::process {
namespace {

using namespace std::chrono_literals;

TEST(WriteWithin, WritesWhatThereIsRoomFor) {
  Pipe pipe = make_pipe();
  EXPECT_EQ(write_within(pipe.write.get(), "a line\n", within(0s)), Written::all);
  EXPECT_EQ(read_until(pipe.read.get(), "\n", within(10s)), "a line\n");
  EXPECT_EQ(write_within(pipe.write.get(), std::string(1 << 20, 'x'), within(20ms)),
            Written::not_in_time);
  EXPECT_EQ(fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0) << "others share it";
}

TEST(WriteWithin, DoesNotWaitForAStoppedTerminal) {
  const Pty pty = make_pty();
  ASSERT_EQ(tcflow(pty.slave.get(), TCOOFF), 0);
  EXPECT_EQ(write_within(pty.slave.get(), "a line\n", within(0s)), Written::not_in_time);
  ASSERT_EQ(tcflow(pty.slave.get(), TCOON), 0);
  EXPECT_EQ(write_within(pty.slave.get(), "a line\n", within(0s)), Written::all);
}

TEST(WriteWithin, DoesNotWaitForAFullSocket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd mine(ends[0]);
  const Fd theirs(ends[1]);
  EXPECT_EQ(write_within(theirs.get(), "a line\n", within(0s)), Written::all);
  EXPECT_EQ(write_within(theirs.get(), std::string(1 << 22, 'x'), within(20ms)),
            Written::not_in_time);
}

TEST(WriteWithin, AppendsToAFile) {
  char name[] = "/tmp/leasehold-io-XXXXXX";
  const Fd file(mkstemp(name));
  unlink(name);
  EXPECT_EQ(write_within(file.get(), "one\n", within(0s)), Written::all);
  EXPECT_EQ(write_within(file.get(), "two\n", within(0s)), Written::all);
  EXPECT_EQ(lseek(file.get(), 0, SEEK_CUR), 8);
}

TEST(WriteWithin, SaysIfNobodyReads) {
  const sighandler_t before = signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe();
  pipe.read.reset();
  EXPECT_EQ(write_within(pipe.write.get(), "a line\n", within(10s)), Written::failed);
  signal(SIGPIPE, before);
}

}  // namespace
}  // namespace leasehold::process
