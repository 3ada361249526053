#include "ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "kit/try.h"

namespace leasehold::gate {
namespace {

constexpr std::size_t kBatchRecords = std::size_t{1} << 20;

Error disk_error(const std::string& what, const StateFolder& folder, int error) {
  return Error(ErrorCode::unavailable, "cannot " + what + " the ledger in " + folder.path,
               std::generic_category().message(error));
}

int write_at(int fd, std::string_view bytes, std::size_t at) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(done));
    at += static_cast<std::size_t>(done);
  }
  return 0;
}

Result<std::string> read_whole(const StateFolder& folder, int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return fail(disk_error("read", folder, errno));
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(disk_error("read", folder, errno));
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Result<LedgerImage> read_once(const StateFolder& folder) {
  const kit::Fd file(open(folder.ledger().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) {
    return fail(ErrorCode::unavailable, "there is no gate's ledger in " + folder.path +
                                            "; start the gate, or run `leasehold fence install`");
  }
  if (!file) return fail(disk_error("open", folder, errno));
  auto bytes = TRY(read_whole(folder, file.get()));
  auto image = decode_ledger(bytes);
  if (!image) image.error().message = folder.ledger() + ": " + image.error().message;
  return image;
}

}  // namespace

Result<LedgerImage> read_ledger(const StateFolder& folder) {
  auto image = read_once(folder);
  // A gate that writes meanwhile may show a later batch and not yet the earlier one.
  for (int again = 0; !image && again < 3; ++again) image = read_once(folder);
  return image;
}

Result<std::unique_ptr<Ledger>> Ledger::open(const StateFolder& folder, LedgerOptions options) {
  std::unique_ptr<Ledger> ledger(new Ledger(folder, std::move(options)));
  TRY(ledger->begin());
  ledger->writer_ = std::thread([raw = ledger.get()] { raw->work(); });
  return ledger;
}

Ledger::Ledger(StateFolder folder, LedgerOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {}

Ledger::~Ledger() {
  (void)close();
}

Status Ledger::begin() {
  const bool is_missing = access(folder_.ledger().c_str(), F_OK) != 0 && errno == ENOENT;
  if (!is_missing) {
    auto image = TRY(read_once(folder_));
    states_ = std::move(image.states);
  }
  for (const auto& [resource, state] : states_) {
    const auto& record = records_[resource.str()] = encode_record(resource, state);
    records_bytes_ += record.size();
  }
  return rewrite();
}

Version Ledger::write(const ResourceName& resource, const ResourceState& state) {
  Change change{resource.str(), encode_record(resource, state)};
  const MutexLock lock(mutex_);
  waiting_.push_back(std::move(change));
  if (waiting_.size() == 1) changed_.notify_one();
  return ++given_;
}

Status Ledger::close() {
  if (!writer_.joinable()) return {};
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  writer_.join();
  {
    const MutexLock lock(mutex_);
    if (broken_) return fail(ErrorCode::unavailable, "the ledger in " + folder_.path + " failed");
  }
  return rewrite();
}

void Ledger::work() {
  for (;;) {
    std::vector<Change> changes;
    Version version = 0;
    {
      const MutexLock lock(mutex_);
      changed_.wait(mutex_,
                    [this]() LEASEHOLD_REQUIRES(mutex_) { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      changes.swap(waiting_);
      version = given_;
    }
    if (auto done = put(std::move(changes)); !done) {
      {
        const MutexLock lock(mutex_);
        broken_ = true;
      }
      if (options_.failed) options_.failed(std::move(done.error()));
      return;
    }
    if (options_.durable) options_.durable(version);
  }
}

Status Ledger::put(std::vector<Change> changes) {
  std::string records;
  for (Change& change : changes) {
    records += change.record;
    std::string& kept = records_[change.resource];
    records_bytes_ += change.record.size();
    records_bytes_ -= kept.size();
    kept = std::move(change.record);
  }
  if (end_ - rewritten_bytes_ > std::max(options_.compact_above, 4 * rewritten_bytes_) ||
      records.size() > kMaxBatchBytes) {
    return rewrite();
  }
  return write_batch(records);
}

Status Ledger::write_batch(std::string_view records) {
  const std::string batch = encode_batch(batches_ + 1, records);
  TRY(extend(end_ + batch.size()));
  if (const int error = write_at(file_.get(), batch, end_); error != 0) {
    return fail(disk_error("write to", folder_, error));
  }
  if (sync() != 0) return fail(disk_error("sync", folder_, errno));
  ++batches_;
  end_ += batch.size();
  return {};
}

// Zeros written beforehand: a sync then has data to write, and no metadata.
Status Ledger::extend(std::size_t needed) {
  while (size_ < needed) {
    const std::string zeros(options_.grow_by, '\0');
    if (const int error = write_at(file_.get(), zeros, size_); error != 0) {
      return fail(disk_error("write to", folder_, error));
    }
    size_ += zeros.size();
  }
  return {};
}

// A new file takes the place of the old one when it is whole.
Status Ledger::rewrite() {
  std::vector<std::string> batches(1);
  for (const auto& [resource, record] : records_) {
    if (batches.back().size() + record.size() > kBatchRecords) batches.emplace_back();
    batches.back() += record;
  }
  std::string bytes = encode_header(batches.size());
  std::uint64_t number = 0;
  for (const std::string& records : batches) bytes += encode_batch(++number, records);

  // Never a file whose sync has failed before: what it says of the next one cannot be trusted.
  const std::string path = folder_.new_ledger();
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail(disk_error("create", folder_, errno));
  }
  kit::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return fail(disk_error("create", folder_, errno));
  file_ = std::move(file);
  batches_ = number;
  end_ = rewritten_bytes_ = bytes.size();
  size_ = 0;
  TRY(extend(bytes.size() + 1));
  if (const int error = write_at(file_.get(), bytes, 0); error != 0) {
    return fail(disk_error("write to", folder_, error));
  }
  if (sync() != 0 || fsync(file_.get()) != 0) return fail(disk_error("sync", folder_, errno));
  if (rename(path.c_str(), folder_.ledger().c_str()) != 0) {
    return fail(disk_error("replace", folder_, errno));
  }
  return sync_folder(folder_.path);
}

int Ledger::sync() const {
  return options_.sync ? options_.sync(file_.get()) : fdatasync(file_.get());
}

}  // namespace leasehold::gate
