// The hidden folder of one fenced thing: its lock and its versions.
//
//   folder/report.json                          a hard link to the current version's data, or
//   folder/site -> .leasehold/site/<id>/data    for a folder, a symbolic link
//   folder/.leasehold/report.json/              locked by flock(2) while it is looked at or changed
//   folder/.leasehold/report.json/<id>/data
//   folder/.leasehold/report.json/<id>/mark
//
// The version to which the ordinary path leads is the current one, so the rename that moves this
// path is the moment at which data and mark change, both or neither. Other versions are leftovers
// of the dead, or being filled by somebody who has locked them, or kept for those who still read.
#pragma once

#include <string>
#include <vector>

#include "disk.h"
#include "leasehold/files/fence.h"
#include "place.h"
#include "record.h"

namespace leasehold::files {

enum class Kind { file, folder };

struct Version {
  std::string id;
  Fd folder;
  Kind kind = Kind::file;
  Record record;
};

// A version that is not in place yet. Locked as long as it is open, so that nobody removes it.
struct Draft {
  std::string id;
  Fd folder;
};

class Vault {
 public:
  // `unavailable` if the fence is not installed, `unsupported` for a wrong filesystem.
  [[nodiscard]] static Result<Vault> open(const Place& place, const FenceOptions& options);
  // Makes the hidden folder first if it is missing.
  [[nodiscard]] static Result<Vault> create(const Place& place, const FenceOptions& options);

  Vault(Vault&& other) noexcept;
  Vault& operator=(Vault&&) = delete;
  ~Vault();  // unlocks

  const Place& place() const { return place_; }

  // Keeps every other process and thread out. `unavailable` after options.wait, `cancelled`.
  [[nodiscard]] Status lock(const FenceOptions& options);
  void unlock();
  // `invalid` in a forked child: the lock is its parent's.
  [[nodiscard]] Status check_owner() const;

  // ---- without the lock -----------------------------------------------------------------------

  // `unavailable` unless a version is there.
  [[nodiscard]] Status check_installed() const;

  // What is remembered at some moment of this call.
  [[nodiscard]] Result<Record> peek() const;
  [[nodiscard]] Result<Kind> kind() const;
  // Makes the data of a draft durable ahead of publish(), while others go on.
  [[nodiscard]] Status sync_data(const Draft& draft) const;
  // Of a draft that was not published.
  void discard(const Draft& draft) const;

  // ---- all of these need the lock ---------------------------------------------------------------

  // The version that is in place: durable when this returns. Removes what the dead left behind.
  [[nodiscard]] Result<Version> current() const;

  // Replaces the mark alone. Durable when this returns; the same record again is only made durable.
  [[nodiscard]] Status save(Version& version, const Record& record) const;

  // A new version, empty.
  [[nodiscard]] Result<Draft> draft(Kind kind) const;

  // Puts the draft with this record in the place of `old`. `outcome_unknown` if it is in place but
  // perhaps not durable; after any other failure nothing has changed.
  [[nodiscard]] Status publish(const Draft& draft, Record record, const Version& old) const;

  // Makes what is at the ordinary path the first version, or one with the mark that is known of
  // earlier ones. Nothing to do if it is a version already.
  [[nodiscard]] Status found() const;

 private:
  Vault(Place place, Fd outside, Fd inside)
      : place_(std::move(place)), outside_(std::move(outside)), inside_(std::move(inside)) {}

  std::string cannot(const std::string& what) const;
  std::string link_to(const std::string& id) const;
  Result<bool> is_still_there() const;
  Result<std::optional<struct stat>> status() const;
  Result<std::vector<std::string>> ids() const;
  Result<Version> open_version(const std::string& id, Kind kind) const;
  Result<std::optional<Version>> find(const struct stat& thing) const;
  Result<std::optional<Version>> find_file(const struct stat& thing) const;
  Result<std::optional<Version>> find_folder() const;
  Result<std::optional<Version>> find_copied(const struct stat& thing) const;
  Result<std::optional<Version>> resolve(const struct stat& thing) const;
  tl::unexpected<Error> unknown_thing() const;
  Status relink(const Version& version) const;
  void sweep(const Version& current) const;
  Result<Draft> new_draft() const;
  Status write_mark(int folder, const Record& record) const;
  Status prepare(const Draft& draft, const Record& record, const Version& old) const;
  Result<Record> highest_record() const;
  Status found_file(const Draft& draft) const;
  Status found_folder(const Draft& draft) const;
  Result<bool> complete_foundation() const;

  Place place_;
  Fd outside_;  // the folder of the ordinary path
  Fd inside_;   // the hidden one
  bool locked_ = false;
  pid_t owner_ = 0;  // the process that has locked it
};

}  // namespace leasehold::files
