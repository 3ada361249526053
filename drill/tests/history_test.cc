#include "leasehold/drill/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "leasehold/drill/history_file.h"
#include "rig/temp_folder.h"
#include "story.h"

namespace leasehold::drill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kBoot = "boot-1";

class HistoryFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "log") const { return folder_.path() / name; }

  void put(const std::string& text, const std::string& name = "log") const {
    std::ofstream(path(name)) << text;
  }
  std::string content(const std::string& name = "log") const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  // What the reader says about a file with this content, without the name of the file.
  std::string complaint(const std::string& text) const {
    put(text);
    HistoryReader reader;
    const Status done = reader.read(path());
    if (done) return "no complaint";
    EXPECT_EQ(done.error().code, ErrorCode::invalid);
    EXPECT_EQ(done.error().message.find(path() + ":"), 0u) << done.error().message;
    return done.error().message.substr(path().size() + 1);
  }

 private:
  rig::TempFolder folder_;
};

const std::string kFirst = "history\t1\tboot-1\tclient\n";
const std::string kRequest(32, 'a');
const std::string kRecord = "1\t5\tclient\tok\tacquire\tjob\t7\t" + kRequest +
                            "\t1\t900\t12\t11\t" + std::string(32, 'b') + "\t3\n";

std::string with(std::size_t column, const std::string& text) {
  std::string line;
  std::istringstream columns(kRecord.substr(0, kRecord.size() - 1));
  std::string each;
  for (std::size_t i = 0; std::getline(columns, each, '\t'); ++i) {
    line += (i == 0 ? "" : "\t") + (i == column ? text : each);
  }
  return line + "\n";
}

std::string with_more(const std::string& columns) {
  return kRecord.substr(0, kRecord.size() - 1) + "\t" + columns + "\n";
}

TEST(HistoryTest, NamesAreKeptOnce) {
  History history;
  EXPECT_EQ(history.lock("a"), history.lock("a"));
  EXPECT_NE(history.lock("a"), history.lock("b"));
  EXPECT_EQ(history.lock_name(history.lock("b")), "b");
  const auto request = id_of<RequestId>(7);
  EXPECT_EQ(history.request_id(history.request(request)), request);
  EXPECT_NE(history.lock("a"), 0u);
}

TEST(HistoryTest, MergesProcessesByTimeAndKeepsEachOnesOrder) {
  History history;
  const auto add = [&](std::string_view process, std::int64_t time, std::uint64_t value) {
    Record record;
    record.process = history.process(process);
    record.time = time;
    record.value = value;
    ASSERT_TRUE(history.append(record));
  };
  add("b", 5, 1);
  add("b", 5, 2);
  add("b", 9, 3);
  add("a", 1, 4);
  add("a", 5, 5);
  EXPECT_FALSE(history.sorted());
  history.sort();
  EXPECT_TRUE(history.sorted());
  std::vector<std::uint64_t> values;
  for (const Record& each : history.records()) values.push_back(each.value);
  EXPECT_THAT(values, ElementsAre(4, 1, 2, 5, 3));
}

TEST(HistoryTest, TimeOfOneProcessCannotGoBack) {
  History history;
  Record record;
  record.process = history.process("a");
  record.time = 5;
  ASSERT_TRUE(history.append(record));
  record.time = 4;
  const Status done = history.append(record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "time of 'a' goes back from 5 to 4");
  EXPECT_EQ(history.records().size(), 1u);
}

TEST(HistoryTest, RecordOfAnotherHistoryIsRefused) {
  History history;
  Record record;
  EXPECT_FALSE(history.append(record));
  record.process = history.process("a");
  record.request = 1;
  EXPECT_FALSE(history.append(record));
}

TEST(HistoryTest, SlotWithoutAPermitIsRefused) {
  History history;
  Record record;
  record.process = history.process("a");
  record.set_mode(Mode::permit_of(2), Slot{1});
  EXPECT_TRUE(history.append(record));
  record.mode = 0;
  EXPECT_FALSE(history.append(record));
  record.slot = 0;
  record.mode = -2;
  EXPECT_FALSE(history.append(record));
}

TEST_F(HistoryFileTest, WhatWritersWroteIsReadBackMerged) {
  auto one = HistoryWriter::open(path("one"), "one", kBoot);
  auto two = HistoryWriter::open(path("one"), "two", kBoot);  // into the same file
  auto three = HistoryWriter::open(path("three"), "three", kBoot);
  ASSERT_TRUE(one && two && three);
  Record record;
  record.kind = Kind::grant;
  record.operation = Operation::acquire;
  record.time = 30;
  record.token = std::numeric_limits<std::int64_t>::max();
  record.deadline = 900;
  record.epoch = 2;
  const HistoryWriter::Names names{"ein Schloß", id_of<RequestId>(1), id_of<StoreId>(2)};
  ASSERT_TRUE(one->write(record, names));
  record = {};
  record.kind = Kind::accept;
  record.operation = Operation::write;
  record.time = 20;
  record.value = std::numeric_limits<std::uint64_t>::max();
  record.base = 5;
  record.sequence = 6;
  ASSERT_TRUE(two->write(record, {}));
  record.time = 10;
  ASSERT_TRUE(three->write(record, {}));
  record.time = 40;
  ASSERT_TRUE(three->write(record, {}));

  HistoryReader reader;
  ASSERT_TRUE(reader.read(path("one")));
  ASSERT_TRUE(reader.read(path("three")));
  const History history = reader.take();
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < history.records().size(); ++i) lines.push_back(describe(history, i));
  EXPECT_THAT(
      lines,
      ElementsAre("#0 0.000000 s three accept write sequence=6 value=18446744073709551615 base=5",
                  "#1 0.000000 s two accept write sequence=6 value=18446744073709551615 base=5",
                  "#2 0.000000 s one grant acquire lock=ein Schloß token=9223372036854775807 "
                  "request=00000000 deadline=0.000001 s store=00000000 epoch=2",
                  "#3 0.000000 s three accept write sequence=6 value=18446744073709551615 base=5"));
  EXPECT_EQ(history.request_id(history.records()[2].request), id_of<RequestId>(1));
}

TEST_F(HistoryFileTest, SavedHistoryIsReadBackTheSame) {
  Story story;
  story.asks(1).grant(1, 1).gets(1, 1, 900).read(1, 1, 0).write(1, 1, 0, 10).crash(1);
  ASSERT_TRUE(save_history(story.history, path(), kBoot));
  HistoryReader reader;
  ASSERT_TRUE(reader.read(path()));
  const History history = reader.take();
  EXPECT_EQ(history.records(), story.history.records());
  ASSERT_TRUE(save_history(history, path("again"), kBoot));
  EXPECT_EQ(content(), content("again"));
}

TEST_F(HistoryFileTest, ModesAndSlotsAreReadBackAndOthersAreExclusive) {
  Story story;
  story.grant(1, 1).release(1, 1).shared().grant(2, 2).shared().waits(3).leaves(3);
  story.permit(2, 0).grant(4, 4).permit(10'000, 9'999).grant(5, 5);
  ASSERT_TRUE(save_history(story.history, path(), kBoot));
  HistoryReader reader;
  ASSERT_TRUE(reader.read(path()));
  const History history = reader.take();
  EXPECT_EQ(history.records(), story.history.records());
  EXPECT_THAT(describe(history, 2), ::testing::EndsWith(" mode=shared"));
  EXPECT_THAT(describe(history, 5), ::testing::EndsWith(" mode=one of 2 permits slot=0"));
  EXPECT_EQ(history.records()[0].mode, 0);
}

TEST_F(HistoryFileTest, ModeAndSlotAreChecked) {
  for (const std::string good : {"shared\t-", "1\t0", "10000\t9999", "4\t-", "2\t3"}) {
    EXPECT_EQ(complaint(kFirst + with_more(good)), "no complaint") << good;
  }
  const auto about = [&](const std::string& columns) {
    return complaint(kFirst + with_more(columns));
  };
  EXPECT_EQ(about("-\t-"), "2: mode is '-'; it must be shared or a number of permits");
  for (const std::string bad : {"0", "-1", "10001", "04", "Shared", ""}) {
    EXPECT_THAT(about(bad + "\t-"), HasSubstr("2: mode is '" + bad)) << bad;
  }
  EXPECT_EQ(about("4\t10000"),
            "2: slot is '10000'; it must be - or the number of one of the permits");
  for (const std::string bad : {"-1", "00", "01", "x", ""}) {
    EXPECT_THAT(about("4\t" + bad), HasSubstr("2: slot is '" + bad)) << bad;
  }
  EXPECT_THAT(about("shared\t0"), HasSubstr("2: slot is '0'"));
}

TEST_F(HistoryFileTest, CompleteRecordIsTaken) {
  EXPECT_EQ(complaint(kFirst + kRecord), "no complaint");
}

TEST_F(HistoryFileTest, EveryColumnIsChecked) {
  const auto about = [&](std::size_t column, const std::string& text) {
    return complaint(kFirst + with(column, text));
  };
  EXPECT_EQ(about(0, "2"), "2: index is '2'; it must be 1, the next of 'client'");
  EXPECT_EQ(about(1, "-5"),
            "2: time is '-5'; it must be - or a whole number from 1 to 9223372036854775807");
  EXPECT_THAT(about(1, "0"), HasSubstr("2: time is '0'"));
  EXPECT_THAT(about(1, "05"), HasSubstr("2: time is '05'"));
  EXPECT_THAT(about(1, ""), HasSubstr("2: time is ''"));
  EXPECT_THAT(about(1, "9223372036854775808"), HasSubstr("2: time is"));
  EXPECT_EQ(about(2, "other"), "2: there is no 'history' line of process 'other' before");
  EXPECT_THAT(about(3, "OK"), HasSubstr("2: kind is 'OK'"));
  EXPECT_THAT(about(4, "-"), HasSubstr("2: operation is '-'"));
  EXPECT_THAT(about(5, "a\x01z"), HasSubstr("2: lock is"));
  EXPECT_THAT(about(5, ""), HasSubstr("2: lock is ''"));
  EXPECT_THAT(about(6, "7.0"), HasSubstr("2: token is '7.0'"));
  EXPECT_EQ(about(7, "abc"), "2: request is 'abc'; it must be - or 32 hexadecimal digits");
  EXPECT_THAT(about(8, "4294967296"), HasSubstr("2: sequence is"));
  EXPECT_THAT(about(9, "x"), HasSubstr("2: deadline is 'x'"));
  EXPECT_THAT(about(10, "1 "), HasSubstr("2: value is '1 '"));
  EXPECT_THAT(about(11, "+1"), HasSubstr("2: base is '+1'"));
  EXPECT_THAT(about(12, "g"), HasSubstr("2: store is 'g'"));
  EXPECT_THAT(about(13, "65536"), HasSubstr("2: epoch is '65536'"));
}

TEST_F(HistoryFileTest, BadLinesGetOneSentenceWithTheirNumber) {
  EXPECT_EQ(complaint(""), "1: the file is empty");
  EXPECT_EQ(complaint(kRecord), "1: there is no 'history' line of process 'client' before");
  EXPECT_EQ(complaint(kFirst + "\n"),
            "2: the line has 1 columns; a record has 14, or 16 with a mode");
  EXPECT_EQ(complaint(kFirst + with_more("-")),
            "2: the line has 15 columns; a record has 14, or 16 with a mode");
  EXPECT_EQ(complaint(kFirst + with_more("4\t3\t-")),
            "2: the line has more than 16 columns; a record has 14, or 16 with a mode");
  EXPECT_EQ(complaint(kFirst + kRecord.substr(0, 20)),
            "2: the line has no end: its writer was stopped in the middle");
  EXPECT_EQ(complaint(kFirst + kFirst), "2: two logs are called 'client'");
  EXPECT_EQ(complaint("history\t2\tboot-1\tclient\n"), "1: version is '2'; it must be 1");
  EXPECT_EQ(complaint("history\t1\tboot-1\n"),
            "1: a line that begins with 'history' must have 4 columns");
  EXPECT_EQ(complaint(kFirst + "history\t1\tboot-2\tother\n"),
            "2: boot is 'boot-2', but the records before are of boot 'boot-1': their clocks cannot "
            "be compared");
  EXPECT_EQ(complaint(kFirst + kRecord + "2\t4" + kRecord.substr(3)),
            "3: time of 'client' goes back from 5 to 4");
  EXPECT_EQ(complaint(kFirst + std::string(5000, 'x') + "\n"),
            "2: the line has more than 4096 bytes");
  EXPECT_EQ(complaint(kFirst + std::string(3'000'000, 'x')),
            "2: the line has more than 4096 bytes");
}

TEST_F(HistoryFileTest, TooManyProcessesAreABadLine) {
  std::string text;
  for (int i = 0; i < 65'536; ++i) text += "history\t1\tboot-1\t" + std::to_string(i) + "\n";
  EXPECT_EQ(complaint(text), "65536: a history has too many different names");
}

TEST_F(HistoryFileTest, LinesThatCrossAReadAreWhole) {
  std::string text = kFirst;
  for (int i = 1; i <= 20'000; ++i) {
    text += std::to_string(i) + kRecord.substr(1);
  }
  ASSERT_GT(text.size(), 2u << 20);
  put(text);
  HistoryReader reader;
  ASSERT_TRUE(reader.read(path()));
  EXPECT_EQ(reader.take().records().size(), 20'000u);
}

TEST_F(HistoryFileTest, MissingFileAndBadNamesAreTold) {
  HistoryReader reader;
  const Status done = reader.read(path("none"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  EXPECT_EQ(to_string(done.error()),
            "unavailable: cannot read '" + path("none") + "' (No such file or directory)");
  EXPECT_EQ(HistoryWriter::open(path("none/x"), "a", kBoot).error().code, ErrorCode::unavailable);
  for (const std::string_view name : {"", "-", "a\tb", "a\n"}) {
    EXPECT_EQ(HistoryWriter::open(path("x"), name, kBoot).error().code, ErrorCode::invalid) << name;
  }
}

TEST_F(HistoryFileTest, BootOfThisMachineIsAName) {
  EXPECT_EQ(current_boot(), current_boot());
  EXPECT_TRUE(HistoryWriter::open(path(), "a", current_boot()));
}

}  // namespace
}  // namespace leasehold::drill
