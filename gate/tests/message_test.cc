// Heads, bodies and paths, byte by byte.
#include <gmock/gmock.h>

#include "body.h"
#include "head.h"
#include "problem.h"
#include "resource_pattern.h"
#include "text.h"
#include "tokens.h"

namespace leasehold::gate {
namespace {

using ::testing::HasSubstr;

std::string request(const std::string& rest, const std::string& line = "GET / HTTP/1.1") {
  return line + "\r\nHost: a\r\n" + rest + "\r\n";
}

int status_of(const std::string& text) {
  const auto size = head_size(text, 0);
  if (!size) return size.error().status;
  if (*size == 0) return -1;
  const auto head = parse_request(std::string_view(text).substr(0, *size));
  return head ? 200 : head.error().status;
}

TEST(HeadTest, WhatIsFine) {
  const std::string text = request("A: b\r\nX-Empty:\r\nContent-Length: 12\r\n");
  const auto head = parse_request(text);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->method, "GET");
  EXPECT_EQ(head->target, "/");
  ASSERT_EQ(head->fields.size(), 4u);
  EXPECT_EQ(head->fields[2].value, "");
  EXPECT_EQ(head->body.framing, Framing::length);
  EXPECT_EQ(head->body.length, 12u);
}

TEST(HeadTest, WhatTwoReadersCouldUnderstandInTwoWaysIsRefused) {
  const std::pair<const char*, int> rests[] = {
      {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400},
      {"Content-Length: 5\r\nContent-Length: 6\r\n", 400},
      {"Content-Length: 5\r\ncontent-length: 5\r\n", 400},
      {"Content-Length: 5, 5\r\n", 400},
      {"Content-Length: -1\r\n", 400},
      {"Content-Length: +1\r\n", 400},
      {"Content-Length: 1x\r\n", 400},
      {"Content-Length: 0x10\r\n", 400},
      {"Content-Length:\r\n", 400},
      {"Content-Length: 9223372036854775808\r\n", 400},
      {"Content-Length: 18446744073709551617\r\n", 400},
      {"Transfer-Encoding: gzip, chunked\r\n", 501},
      {"Transfer-Encoding: chunked, chunked\r\n", 501},
      {"Transfer-Encoding: xchunked\r\n", 501},
      {"Transfer-Encoding:\x0b"
       "chunked\r\n",
       400},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding : chunked\r\n", 400},
      {"Transfer_Encoding: chunked\r\n", 400},
      {"Content-Length: 5\r\nTransfer_encoding: chunked\r\n", 400},
      {"Content-Length: 5\r\ncontent_length: 6\r\n", 400},
      {"A: b\r\n folded\r\n", 400},
      {"A: b\r\n\tfolded\r\n", 400},
      {" A: b\r\n", 400},
      {"A : b\r\n", 400},
      {"A\r\n", 400},
      {": b\r\n", 400},
      {"A(b): c\r\n", 400},
      {"A: b\x01"
       "c\r\n",
       400},
      {"A: b\x7f\r\n", 400},
      {"A: b\nB: c\r\n", 400},
      {"A: b\rB: c\r\n", 400},
      {"Host: b\r\n", 400},
      {"Expect: something\r\n", 417},
  };
  for (const auto& [rest, status] : rests) EXPECT_EQ(status_of(request(rest)), status) << rest;
  EXPECT_EQ(status_of(request(std::string("A: b\0c\r\n", 8))), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"), 400);
}

TEST(HeadTest, RequestLines) {
  const std::pair<const char*, int> lines[] = {
      {"GET / HTTP/1.1", 200},
      {"GET / HTTP/1.0", 505},
      {"GET / HTTP/2.0", 505},
      {"GET / http/1.1", 400},
      {"GET /", 400},
      {"GET  / HTTP/1.1", 400},
      {"GET / x HTTP/1.1", 400},
      {" GET / HTTP/1.1", 400},
      {"GET\t/\tHTTP/1.1", 400},
      {"G(T / HTTP/1.1", 400},
      {"GET /\xc3\xa4 HTTP/1.1", 400},
      {"GET / HTTP/1.1 ", 400},
  };
  for (const auto& [line, status] : lines) EXPECT_EQ(status_of(request("", line)), status) << line;
  EXPECT_EQ(status_of(request("", "GET /" + std::string(9000, 'a') + " HTTP/1.1")), 414);
  EXPECT_EQ(status_of(request("", std::string(33, 'M') + " / HTTP/1.1")), 400);
}

TEST(HeadTest, SizesAreBounded) {
  std::string many;
  for (std::size_t i = 0; i < kMaxFields; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(request(many)), 431);
  EXPECT_EQ(status_of(request("A: " + std::string(kMaxHeadBytes, 'x') + "\r\n")), 431);
  EXPECT_EQ(status_of(std::string(kMaxHeadBytes + 1, 'x')), 431) << "without any line";
}

TEST(HeadTest, ABadLineIsSeenBeforeTheHeadIsComplete) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\rX"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n"), -1) << "more may come";
}

TEST(HeadTest, CutAnywhereItIsReadTheSame) {
  const std::string whole = request("A: b\r\n");
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_EQ(head_size(whole.substr(0, cut), 0).value(), 0u) << cut;
    EXPECT_EQ(head_size(whole + "BODY", cut).value(), whole.size()) << cut;
  }
}

TEST(HeadTest, Responses) {
  const auto parse = [](const std::string& text, bool to_head = false) {
    return parse_response(text + "\r\n", to_head);
  };
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n")->body.length, 3u);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\n")->body.framing, Framing::until_close);
  EXPECT_TRUE(parse("HTTP/1.1 200 OK\r\n")->closes);
  EXPECT_TRUE(parse("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n")->closes);
  EXPECT_FALSE(parse("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n")->closes);
  EXPECT_TRUE(parse("HTTP/1.1 200\r\nContent-Length: 3\r\nConnection: x, Close\r\n")->closes);
  EXPECT_EQ(parse("HTTP/1.1 204 No\r\nContent-Length: 3\r\n")->body.framing, Framing::none);
  EXPECT_EQ(parse("HTTP/1.1 304 No\r\n")->body.framing, Framing::none);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", true)->body.framing, Framing::none);
  for (const char* wrong :
       {"HTTP/1.1 20 OK\r\n", "HTTP/1.1 2000 OK\r\n", "HTTP/1.1 099 OK\r\n", "HTTP/1.1 600 OK\r\n",
        "HTTP/2.0 200 OK\r\n", "ICY 200 OK\r\n", "HTTP/1.1 200 O\x01K\r\n", "HTTP/1.1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_FALSE(parse(wrong)) << wrong;
  }
}

struct Body {
  std::string data;
  std::string trailer;
  std::size_t consumed = 0;
  bool done = false;
  bool failed = false;
};

// `piece` bytes at a time, as a network might deliver them.
Body decode(BodyFrame frame, const std::string& bytes, std::size_t piece) {
  BodyDecoder decoder(frame);
  Body body;
  std::string in;
  for (std::size_t at = 0;;) {
    const auto step = decoder.step(in);
    if (!step) {
      body.failed = true;
      return body;
    }
    body.data += step->data;
    body.consumed += step->consumed;
    in.erase(0, step->consumed);
    if (decoder.done()) break;
    if (step->consumed > 0) continue;
    if (at >= bytes.size()) return body;
    in += bytes.substr(at, piece);
    at += piece;
  }
  body.done = true;
  body.trailer = decoder.trailer();
  return body;
}

constexpr BodyFrame kChunked{Framing::chunked, 0};

TEST(BodyTest, ChunksInPiecesOfAnySize) {
  const std::string bytes =
      "5\r\nhello\r\n00a;ext=\"x\"\r\n, world!!!\r\n0\r\nT: v\r\nU: w\r\n\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Body body = decode(kChunked, bytes + "GET /next", piece);
    ASSERT_TRUE(body.done) << piece;
    EXPECT_EQ(body.data, "hello, world!!!") << piece;
    EXPECT_EQ(body.trailer, "T: v\r\nU: w\r\n") << piece;
    EXPECT_EQ(body.consumed, bytes.size()) << piece;
  }
}

TEST(BodyTest, BadChunks) {
  for (const char* bytes : {"g\r\n",
                            "\r\n",
                            "-1\r\n",
                            "+1\r\n",
                            " 5\r\nhello\r\n",
                            "5 \r\nhello\r\n",
                            "0x5\r\nhello\r\n",
                            "5\nhello\n",
                            "5\r\nhelloX",
                            "5\r\nhello\n0\n\n",
                            "5\r\nhello\rX",
                            "1000000000000000\r\n",
                            "ffffffffffffffff\r\n",
                            "5;\x01\r\nhello\r\n",
                            "0\r\nContent-Length: 5\r\n\r\n",
                            "0\r\nTransfer-Encoding: chunked\r\n\r\n",
                            "0\r\nContent_Length: 5\r\n\r\n",
                            "0\r\nTransfer_Encoding: chunked\r\n\r\n",
                            "0\r\nHost: b\r\n\r\n",
                            "0\r\n folded: x\r\n\r\n",
                            "0\r\nA: b\n\r\n",
                            "0\r\nA: b\rC: d\r\n\r\n",
                            "0\r\nno colon\r\n\r\n"}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{100}}) {
      EXPECT_TRUE(decode(kChunked, bytes, piece).failed) << bytes;
    }
  }
  EXPECT_TRUE(decode(kChunked, "5;" + std::string(300, 'x'), 100).failed) << "an endless size";
  EXPECT_TRUE(decode(kChunked, "0\r\nA: " + std::string(9000, 'x'), 100).failed);
  std::string lines = "0\r\n";
  for (int i = 0; i < 2000; ++i) lines += "A: b\r\n";
  EXPECT_TRUE(decode(kChunked, lines, 100).failed) << "an endless trailer";
}

TEST(BodyTest, Lengths) {
  const Body body = decode({Framing::length, 5}, "helloGET", 3);
  EXPECT_TRUE(body.done);
  EXPECT_EQ(body.data, "hello");
  EXPECT_FALSE(decode({Framing::length, 5}, "hell", 3).done);
  EXPECT_TRUE(decode({Framing::none, 0}, "", 3).done);
  BodyDecoder endless({Framing::until_close, 0});
  EXPECT_EQ(endless.step("abc")->data, "abc");
  EXPECT_FALSE(endless.done());
  EXPECT_TRUE(endless.end_of_stream());
  EXPECT_FALSE(BodyDecoder({Framing::length, 5}).end_of_stream());
}

std::string resource_in(const std::string& pattern, const std::string& target,
                        EncodedSlash slashes = EncodedSlash::refused) {
  const auto name = ResourcePattern::parse(pattern).value().find(target, slashes);
  return name ? name->str() : std::to_string(name.error().status);
}

TEST(ResourcePatternTest, Finds) {
  EXPECT_EQ(resource_in("/{resource}", "/a"), "a");
  EXPECT_EQ(resource_in("/{resource}", "/a/"), "a");
  EXPECT_EQ(resource_in("/{resource}", "/a/b?c=d/e"), "a");
  EXPECT_EQ(resource_in("/accounts/{resource}", "/accounts/42/rows"), "42");
  EXPECT_EQ(resource_in("/accounts/{resource}", "/%61ccounts/4%32"), "42");
  EXPECT_EQ(resource_in("/*/{resource}", "/v1/x"), "x");
  EXPECT_EQ(resource_in("/{resource}/{resource}", "/a/b/c"), "a/b");
  EXPECT_EQ(resource_in("/{resource}", "/%D0%96%20b"), "Ж b");
}

TEST(ResourcePatternTest, WhatNamesNoResource) {
  EXPECT_EQ(resource_in("/{resource}", "/"), "404");
  EXPECT_EQ(resource_in("/accounts/{resource}", "/accounts"), "404");
  EXPECT_EQ(resource_in("/accounts/{resource}", "/Accounts/42"), "404");
  EXPECT_EQ(resource_in("/accounts/{resource}", "/users/42"), "404");
}

TEST(ResourcePatternTest, WhatTheUpstreamMightReadAsAnotherPath) {
  for (const char* target :
       {"/a/../b",   "/..",       "/./a",       "/a/.",  "/%2e%2e/b", "/%2E./b",
        "/a/..;x/b", "/..%3bx/b", "//a",        "/a//b", "/a%2Fb",    "/a%2fb",
        "/a%5cb",    "/a\\b",     "/a;b",       "/a%00", "/a%0a",     "/a%7f",
        "/a%ff",     "/a%",       "/a%4",       "/a%zz", "/a#b",      "/a\"b",
        "/<a>",      "a",         "http://h/a", "*",     "/a|b",      "/a^b"}) {
    EXPECT_EQ(resource_in("/{resource}", target), "400") << target;
  }
  EXPECT_EQ(resource_in("/{resource}", "/" + std::string(513, 'n')), "400");
  EXPECT_EQ(resource_in("/{resource}", "/" + std::string(512, 'n')), std::string(512, 'n'));
  EXPECT_EQ(resource_in("/{resource}", "/a%2Fb", EncodedSlash::part_of_the_name), "a/b");
  EXPECT_EQ(resource_in("/{resource}", "/a%2Fb/..", EncodedSlash::part_of_the_name), "400");
}

TEST(ResourcePatternTest, WrongPatterns) {
  for (const char* text : {"", "accounts/{resource}", "/accounts", "//{resource}", "/{resource}/",
                           "/x{resource}", "/{other}", "/a*/{resource}", "/a%20/{resource}"}) {
    const auto pattern = ResourcePattern::parse(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_EQ(pattern.error().code, ErrorCode::invalid);
  }
}

TEST(TextTest, JsonHoldsAnything) {
  EXPECT_EQ(json_string("a\"b\\c\n\x7f"), "\"a\\\"b\\\\c\\n\\u007f\"");
  EXPECT_EQ(json_string("Ж\xff"), "\"Ж�\"");
  EXPECT_EQ(json_string("\xe2\x82"), "\"�\"");
  for (const char* wrong : {"\xed\xa0\x80", "\xe0\x80\x80"}) {  // a surrogate, a longer form
    EXPECT_EQ(json_string(wrong), "\"���\"");
  }
}

TEST(TextTest, Decimals) {
  EXPECT_EQ(kit::digits_in<std::int64_t>("9223372036854775807"), 9223372036854775807);
  for (const char* wrong :
       {"", "9223372036854775808", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1"}) {
    EXPECT_FALSE(kit::digits_in<std::int64_t>(wrong)) << wrong;
  }
}

TEST(ProblemTest, HasBothNumbersExactly) {
  const Ticket ticket{name("a"), {.token = test_token(9007199254740993, 1)}};
  const Problem problem = problem_of(
      Objection{Objection::Why::fenced_out, "stale", {9007199254740993, 9223372036854775807}},
      ticket);
  const std::string text = response_of(problem, true, false);
  EXPECT_THAT(text, HasSubstr("HTTP/1.1 409 Conflict\r\n"));
  EXPECT_THAT(text, HasSubstr("\"offered\":9007199254740993,\"mark\":9223372036854775807"));
  EXPECT_THAT(response_of(problem, true, true), ::testing::EndsWith("\r\n\r\n"));
}

}  // namespace
}  // namespace leasehold::gate
