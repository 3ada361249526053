// Many readers or one writer, told apart by the types of their leases.
#pragma once

#include <utility>

#include "leasehold/client.h"

namespace leasehold {

class ReadWriteLock;

// A lease beside other readers. With a token: enter the fence to read, as Fence::read() does.
template <class HeldLease>
class ReadingOf : public HeldLease {
 private:
  friend class ReadWriteLock;
  explicit ReadingOf(HeldLease lease) : HeldLease(std::move(lease)) {}
};

// A lease alone.
template <class HeldLease>
class WritingOf : public HeldLease {
 private:
  friend class ReadWriteLock;
  explicit WritingOf(HeldLease lease) : HeldLease(std::move(lease)) {}
};

using ReadLease = ReadingOf<Lease>;
using WriteLease = WritingOf<Lease>;
using FencedReadLease = ReadingOf<FencedLease>;
using FencedWriteLease = WritingOf<FencedLease>;

// Thread safe; a cheap handle, as Client is. Nobody overtakes: a writer that waits is not passed by
// readers who come later.
class ReadWriteLock {
 public:
  ReadWriteLock(Client client, LockName lock);

  // Block and fail as Client::acquire() and acquire_fenced() do: reading with `unsupported` if the
  // store has exclusive locks only. options.mode is not looked at.
  [[nodiscard]] Result<ReadLease> read(AcquireOptions options = {});
  [[nodiscard]] Result<FencedReadLease> read_fenced(AcquireOptions options = {});
  [[nodiscard]] Result<WriteLease> write(AcquireOptions options = {});
  [[nodiscard]] Result<FencedWriteLease> write_fenced(AcquireOptions options = {});

  // There is no such thing: a reader that waits to be the writer waits for all readers to go, and
  // so does the next one that tries, each for the other. Give the read lease back, take the write
  // lease, and read again: somebody else may have written in between.
  template <class HeldLease>
  void upgrade(const ReadingOf<HeldLease>& lease) = delete;

 private:
  Client client_;
  LockName lock_;
};

}  // namespace leasehold
