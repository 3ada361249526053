#include "signs_of_life.h"

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::zookeeper {
namespace {

using namespace std::chrono_literals;

constexpr Millis kSession = 24s;  // a heartbeat each second; signs are handed on within one

BootTime at(Millis since_the_opening) {
  return BootTime(1000s) + since_the_opening;
}

SignsOfLife opened() {
  SignsOfLife signs;
  signs.opened(at(0s), kSession);
  return signs;
}

TEST(Sessions, OutliveTheirHolderUpToTheNextTick) {
  EXPECT_EQ(most_left(6545ms), 8545ms) << "what a TTL of 5 s asks for, and the default tick";
  EXPECT_EQ(most_left(1s), 1500ms) << "there is no session below two ticks";
}

TEST(SignsOfLife, CountFromTheOpeningAtFirst) {
  EXPECT_EQ(opened().certain_until(), at(24s));
}

TEST(SignsOfLife, WhatOneServerAnswersIsNotCertainYet) {
  SignsOfLife signs = opened();
  signs.answered(at(5s), at(6s));
  EXPECT_EQ(signs.certain_until(), at(24s)) << "the server may be cut off from the leader";
}

TEST(SignsOfLife, TransactionConfirmsWhatWasHandedOnBefore) {
  SignsOfLife signs = opened();
  signs.answered(at(5s), at(6s));
  signs.confirmed(at(7s), at(8s));
  EXPECT_EQ(signs.certain_until(), at(29s));
}

TEST(SignsOfLife, TransactionThatWasSentTooSoonConfirmsLess) {
  SignsOfLife signs = opened();
  signs.answered(at(3s), at(3s));
  signs.answered(at(5s), at(6s));
  signs.confirmed(at(6999ms), at(20s));
  EXPECT_EQ(signs.certain_until(), at(27s)) << "the second was handed on at 7 s, perhaps";
}

TEST(SignsOfLife, TransactionIsItselfASignForTheNext) {
  SignsOfLife signs = opened();
  signs.confirmed(at(10s), at(11s));
  EXPECT_EQ(signs.certain_until(), at(24s));
  signs.confirmed(at(12s), at(12s));
  EXPECT_EQ(signs.certain_until(), at(34s));
}

TEST(SignsOfLife, ManyInAShortTimeDoNotPushOutTheOldOnes) {
  SignsOfLife signs = opened();
  for (Millis now = 1s; now < 9s; now += 1ms) signs.answered(at(now), at(now));
  signs.confirmed(at(3s), at(9s));
  EXPECT_EQ(signs.certain_until(), at(26s));
}

TEST(SignsOfLife, TransactionOfLongAgoConfirmsNothingLater) {
  SignsOfLife signs = opened();
  for (Millis now = 1s; now < 100s; now += 1s) signs.answered(at(now), at(now));
  signs.confirmed(at(10s), at(100s));
  EXPECT_LE(signs.certain_until(), at(33s));
}

TEST(SignsOfLife, NeverGoBack) {
  SignsOfLife signs = opened();
  signs.answered(at(5s), at(5s));
  signs.answered(at(10s), at(10s));
  signs.confirmed(at(11s), at(11s));
  signs.confirmed(at(7s), at(12s));  // sent by another thread
  EXPECT_EQ(signs.certain_until(), at(34s));
}

TEST(SessionLength, LastsAtLeastAsLongAsAsked) {
  for (const int ms : {100, 999, 2600, 2700, 4000, 30'000, 86'400'000}) {
    const Ttl ttl = Ttl::of(Millis(ms)).value();
    const Millis session = session_for(ttl);
    EXPECT_GE(certain_part_of(session), ttl.length()) << ms;
    EXPECT_LE(session, ttl.length() * 3 / 2 + Millis(2)) << ms;
    // Half a tick of the usual two seconds, or of half the session, and a heartbeat.
    const Millis half_a_tick = std::min(Millis(1000), session / 4);
    EXPECT_LT(certain_part_of(session) + half_a_tick + heartbeat_of(session), session);
  }
}

}  // namespace
}  // namespace leasehold::zookeeper
