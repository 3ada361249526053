#include "ledger.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <sstream>

#include "rig/temp_folder.h"
#include "tokens.h"

namespace leasehold::gate {
namespace {

using leasehold::rig::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

ResourceState marked(std::int64_t number) {
  return {.mark = held_by(test_token(number, 1))};
}

// CRC-32C of what is before it.
void put_checksum(std::string& file, std::size_t at) {
  std::uint32_t crc = ~0u;
  for (const char byte : file.substr(0, at)) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(~crc >> (8 * i) & 0xff);
}

// Waits for versions.
class Durable {
 public:
  LedgerOptions options() {
    LedgerOptions options;
    options.durable = [this](Version version) {
      const std::lock_guard lock(mutex_);
      version_ = version;
      changed_.notify_all();
    };
    options.failed = [this](Error error) {
      const std::lock_guard lock(mutex_);
      error_ = std::move(error);
      changed_.notify_all();
    };
    return options;
  }
  // False if the disk failed first.
  bool wait(Version version) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return version_ >= version || error_; });
    return version_ >= version;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Version version_ = 0;
  std::optional<Error> error_;
};

class LedgerTest : public ::testing::Test {
 protected:
  std::string bytes() const {
    std::ifstream file(state_.ledger(), std::ios::binary);
    std::ostringstream all;
    all << file.rdbuf();
    return std::move(all).str();
  }
  std::unique_ptr<Ledger> open() {
    auto ledger = Ledger::open(state_, durable_.options());
    EXPECT_TRUE(ledger) << to_string(ledger.error());
    return ledger ? std::move(*ledger) : nullptr;
  }

  TempFolder folder_;
  StateFolder state_{folder_.path()};
  Durable durable_;
};

TEST_F(LedgerTest, RemembersEverythingAboutAResource) {
  ResourceState full = marked(std::int64_t{1} << 62);
  full.mark.holder->sequence = 7;
  full.refused = 3;
  full.open = true;
  ResourceState adopted;
  adopted.mark.lineage = test_lineage(2, "Жук/🔒");
  adopted.mark.least = TokenNumber::of(12).value();
  {
    const auto ledger = open();
    EXPECT_TRUE(ledger->states().empty());
    ledger->write(name("full"), full);
    ledger->write(name("adopted"), adopted);
    ASSERT_TRUE(durable_.wait(ledger->write(name("bare"), {})));
    EXPECT_EQ(read_ledger(state_)->states.at(name("full")), full) << "while it is written";
  }
  const auto again = open();
  EXPECT_FALSE(again->states().empty());
  EXPECT_EQ(again->states(),
            (ResourceStates{{name("full"), full}, {name("adopted"), adopted}, {name("bare"), {}}}));
}

TEST_F(LedgerTest, WhatTheFileSaysIsEnough) {
  const auto ledger = open();
  ASSERT_TRUE(durable_.wait(ledger->write(name("a"), marked(1))));
  ASSERT_TRUE(durable_.wait(ledger->write(name("a"), marked(2))));
  EXPECT_EQ(decode_ledger(bytes())->states.at(name("a")), marked(2)) << "as after SIGKILL";
}

TEST_F(LedgerTest, RewritingForgetsOnlyWhatIsOutdated) {
  LedgerOptions options = durable_.options();
  options.compact_above = 8192;
  options.sync = [](int) { return 0; };  // no test cuts the power
  auto ledger = std::move(*Ledger::open(state_, std::move(options)));
  Version last = 0;
  std::size_t largest = 0;
  for (int i = 1; i <= 100; ++i) {
    last = ledger->write(name("r" + std::to_string(i % 5)), marked(i));
    ASSERT_TRUE(durable_.wait(last));
    const auto image = decode_ledger(bytes());
    ASSERT_TRUE(image);
    ASSERT_EQ(image->states.at(name("r" + std::to_string(i % 5))), marked(i));
    largest = std::max<std::size_t>(largest, image->batches);
  }
  EXPECT_LT(largest, 40u) << "it was rewritten on the way";
  for (int i = 96; i <= 100; ++i) {
    EXPECT_EQ(decode_ledger(bytes())->states.at(name("r" + std::to_string(i % 5))), marked(i));
  }
}

TEST_F(LedgerTest, ABatchTornAtAnyByteLosesNothingBeforeIt) {
  const std::string records = encode_record(name("a"), marked(1));
  const std::string whole = encode_header(1) + encode_batch(1, records) +
                            encode_batch(2, encode_record(name("a"), marked(2)));
  const std::string last = encode_batch(3, encode_record(name("a"), marked(3)));
  for (std::size_t cut = 0; cut <= last.size(); ++cut) {
    const std::string zeros(last.size() - cut + 4096, '\0');
    const auto image = decode_ledger(whole + last.substr(0, cut) + zeros);
    ASSERT_TRUE(image) << cut;
    EXPECT_THAT(image->states.at(name("a")).mark.threshold(), ::testing::AnyOf(2, 3)) << cut;
  }
  EXPECT_EQ(decode_ledger(whole + last)->states.at(name("a")), marked(3));
}

TEST_F(LedgerTest, AFlippedBitIsFoundWhereverItMatters) {
  std::string file = encode_header(2);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    file += encode_batch(i, encode_record(name("a"), marked(static_cast<std::int64_t>(i))));
  }
  const std::string last = encode_batch(5, encode_record(name("a"), marked(5)));
  int found = 0;
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string flipped = file + last;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    const auto image = decode_ledger(flipped);
    if (image) {
      EXPECT_EQ(image->states.at(name("a")), marked(5)) << at << ": only padding may differ";
    } else {
      EXPECT_EQ(image.error().code, ErrorCode::unavailable);
      ++found;
    }
  }
  EXPECT_GT(found, 4 * 100);
}

TEST_F(LedgerTest, ALedgerOfAnotherVersionIsRefusedAndKept) {
  for (const auto& [version, words] :
       {std::pair('1',
                  "to begin afresh, begin with an empty folder after all holders have stopped"),
        std::pair('3', "use a program that is at least as new")}) {
    std::string file = encode_header(0);
    const std::size_t line = file.find('\n') + 1;
    file[line - 2] = version;
    put_checksum(file, line + 8);
    std::ofstream(state_.ledger(), std::ios::binary) << file;
    const auto refused = Ledger::open(state_, {});
    ASSERT_FALSE(refused) << version;
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr(std::string("the ledger has version ") + version),
                      HasSubstr("this gate works with version 2"), HasSubstr(words)));
    EXPECT_EQ(bytes(), file);
  }
  EXPECT_THAT(decode_ledger("leasehold gate ledger x\n").error().message,
              HasSubstr("not a ledger"));
}

TEST_F(LedgerTest, ARecordThatCannotBeIsDamage) {
  const auto decoded = [](const std::string& record) {
    return decode_ledger(encode_header(1) + encode_batch(1, record));
  };
  ResourceState state = marked(3);
  EXPECT_TRUE(decoded(encode_record(name("a"), state)));
  ResourceState wrong = state;
  wrong.refused = -1;
  EXPECT_FALSE(decoded(encode_record(name("a"), wrong)));
  wrong = state;
  wrong.mark.holder->sequence = -1;
  EXPECT_FALSE(decoded(encode_record(name("a"), wrong)));
  wrong = state;
  wrong.mark.lineage.reset();
  EXPECT_FALSE(decoded(encode_record(name("a"), wrong)));
  std::string record = encode_record(name("a"), ResourceState{});
  record[3] = 2;  // neither open nor closed
  EXPECT_FALSE(decoded(record));
}

TEST_F(LedgerTest, ADamagedFileIsRefusedAndLeftAlone) {
  open().reset();
  std::string damaged = bytes();
  damaged[kBlockBytes + 3] ^= 1;
  std::ofstream(state_.ledger(), std::ios::binary) << damaged;
  const auto ledger = Ledger::open(state_, durable_.options());
  ASSERT_FALSE(ledger);
  EXPECT_THAT(ledger.error().message, HasSubstr("damaged"));
  EXPECT_THAT(ledger.error().message, HasSubstr(state_.ledger()));
  EXPECT_EQ(bytes(), damaged);
}

TEST_F(LedgerTest, NothingIsDurableAfterTheDiskFailed) {
  LedgerOptions options = durable_.options();
  int syncs = 0;
  options.sync = [&](int fd) {
    if (++syncs <= 2) return fdatasync(fd);
    errno = EIO;
    return -1;
  };
  auto ledger = std::move(*Ledger::open(state_, std::move(options)));
  ASSERT_TRUE(durable_.wait(ledger->write(name("a"), marked(1))));
  EXPECT_FALSE(durable_.wait(ledger->write(name("a"), marked(2))));
  EXPECT_FALSE(durable_.wait(ledger->write(name("a"), marked(3))));
  EXPECT_FALSE(ledger->close());
}

TEST_F(LedgerTest, OneGateAtATime) {
  const auto first = FolderLock::take(state_);
  ASSERT_TRUE(first);
  const auto second = FolderLock::take(state_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_THAT(second.error().message, HasSubstr("another gate"));
}

TEST_F(LedgerTest, NoLedger) {
  const auto image = read_ledger(state_);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::unavailable);
  EXPECT_THAT(image.error().message, HasSubstr("there is no gate's ledger"));
}

}  // namespace
}  // namespace leasehold::gate
