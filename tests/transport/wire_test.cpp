#include "transport/wire/wire.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "catch.h"
#include "core/json.h"
#include "golden_file.h"
#include "transport/allocations.h"
#include "transport/wire/message_types.h"
#include "transport/wire/messages_page.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

std::string prelude(std::size_t envelope, std::size_t body) {
  std::string out = "TRPE" + bytes({1, 0, 0, 0});
  for (const auto size : {envelope, body})
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(size >> shift & 0xff);
  return out;
}

// {"type": "run.get"} and {"type": "run.submit"} in plain msgpack, as any language writes it.
const std::string run_get = bytes({0x81, 0xa4}) + "type" + bytes({0xa7}) + "run.get";
const std::string run_submit = bytes({0x81, 0xa4}) + "type" + bytes({0xaa}) + "run.submit";

std::vector<std::string> parts_of(const std::string& body,
                                  const std::string& envelope = run_submit) {
  return {prelude(envelope.size(), body.size()), envelope, body};
}

Result<Message> decode_parts(const std::vector<std::string>& parts) {
  return decode(std::vector<std::string_view>(parts.begin(), parts.end()));
}

std::string undecodable(const std::vector<std::string>& parts) {
  const auto message = decode_parts(parts);
  return message ? "" : message.error().text;
}

Message a_message() {
  Message message;
  message.type = "node.heartbeat";
  message.id = 7;
  message.re = 6;
  message.run = "gpt-small";
  message.from = "alpha";
  message.term = 3;
  message.epoch = 12;
  message.incarnation = std::numeric_limits<std::int64_t>::max();
  message.seq = 900;
  message.ack = 899;
  message.body.set("step", 41);
  message.body.set("flops", 2e19);
  message.body.set("loss", 2.5);
  message.body.set("free", Value::List{1, -1, true, Value(), "text", Value::Map{}});
  message.payload = {"raw", std::string("\0\xff", 2)};
  return message;
}

}  // namespace

TEST_CASE("a message survives encoding and decoding", "[transport]") {
  const auto parts = encode(a_message());
  REQUIRE(parts);
  const auto back = decode_parts(*parts);
  REQUIRE(back);
  const auto sent = a_message();
  CHECK(back->type == sent.type);
  CHECK(back->id == sent.id);
  CHECK(back->re == sent.re);
  CHECK(back->run == sent.run);
  CHECK(back->from == sent.from);
  CHECK(back->term == sent.term);
  CHECK(back->epoch == sent.epoch);
  CHECK(back->incarnation == sent.incarnation);
  CHECK(back->seq == sent.seq);
  CHECK(back->ack == sent.ack);
  CHECK(back->body == sent.body);
  CHECK(back->payload == sent.payload);
}

TEST_CASE("a message is encoded to the documented bytes", "[transport]") {
  Message message;
  message.type = "run.get";
  message.id = 5;
  message.body.set("name", "mlp");
  const auto parts = encode(message);
  REQUIRE(parts);
  const std::string envelope =
      bytes({0x82, 0xa4}) + "type" + bytes({0xa7}) + "run.get" + bytes({0xa2}) + "id" + bytes({5});
  const std::string body = bytes({0x81, 0xa4}) + "name" + bytes({0xa3}) + "mlp";
  CHECK(*parts == std::vector<std::string>{"TRPE" + bytes({1, 0, 0, 0, 18, 0, 0, 0, 10, 0, 0, 0}),
                                           envelope, body});
}

TEST_CASE("an envelope needs only a type, and unknown names are skipped", "[transport]") {
  const auto least = decode_parts(parts_of(bytes({0x80}), run_get));
  REQUIRE(least);
  CHECK(least->type == "run.get");
  CHECK(least->id == 0);
  CHECK(least->body == Value(Value::Map{}));

  const std::string more = bytes({0x82, 0xa4}) + "type" + bytes({0xa7}) + "run.get" +
                           bytes({0xa6}) + "colour" + bytes({0x93, 1, 2, 3});
  CHECK(decode_parts(parts_of(bytes({0x80}), more)));
}

TEST_CASE("a message of an unknown type can be decoded", "[transport]") {
  const std::string envelope = bytes({0x81, 0xa4}) + "type" + bytes({0xa5}) + "later";
  const auto message = decode_parts(parts_of(bytes({0x80}), envelope));
  REQUIRE(message);
  CHECK(message->type == "later");
}

TEST_CASE("a decoding error says where, what was found and what was expected", "[transport]") {
  const std::string a = bytes({0x81, 0xa1}) + "a";
  struct Case {
    std::vector<std::string> parts;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{}, "found a message of 0 parts, wanted a prelude, an envelope and a body"},
      {{"x", "y"}, "found a message of 2 parts, wanted a prelude, an envelope and a body"},
      {{"", "", ""}, "prelude: found 0 bytes, wanted 16"},
      {{"GET / HTTP/1.1\r\n", "", ""},
       "prelude: begins with the bytes 47 45 54 20, wanted 54 52 50 45 (\"TRPE\")"},
      {{"TRPE" + bytes({2, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "", ""},
       "prelude: found version 2.7 of the wire protocol, wanted 1.x"},
      {{"TRPE" + bytes({1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}), "", ""},
       "prelude: found the bytes 00 01 after the version, wanted 00 00"},
      {{prelude(1, 2), bytes({0x80}), bytes({0x80})},
       "prelude: announces an envelope of 1 bytes and a body of 2, but they have 1 and 1"},
      {parts_of(bytes({0x80}), bytes({0x80})), "envelope.type: is missing"},
      {parts_of(bytes({0x80}), bytes({0x90})), "envelope: found a list, wanted a table"},
      {parts_of(bytes({0x80}), bytes({0x81, 0xa4}) + "type" + bytes({3})),
       "envelope.type: found 3, wanted a string"},
      {parts_of(bytes({0x80}), bytes({0x81, 0xa4}) + "type" + bytes({0xa2}) + "a!"),
       "envelope.type: wanted at most 64 of the characters a-z, 0-9, '_' and '.'"},
      {parts_of(bytes({0x80}), run_get.substr(0, 5)),
       "envelope: the 5 bytes end in the middle of a value"},
      {parts_of("", run_get), "run.get.body: the 0 bytes end in the middle of a value"},
      {parts_of(a), "run.submit.body.a: the 3 bytes end in the middle of a value"},
      {parts_of(bytes({0x93, 1, 2})),
       "run.submit.body[2]: the 3 bytes end in the middle of a value"},
      {parts_of(bytes({1})), "run.submit.body: found an integer, wanted a table"},
      {parts_of(bytes({0x80, 0x80})),
       "run.submit.body: found 1 bytes behind the value, wanted none"},
      {parts_of(bytes({0x81, 0xc1})),
       "run.submit.body: found the byte 0xc1 at offset 1, which msgpack does not have"},
      {parts_of(a + bytes({0xc4, 0})),
       "run.submit.body.a: found binary, wanted a value; bytes travel as payload, digests as a "
       "text"},
      {parts_of(a + bytes({0xd4, 1, 1})),
       "run.submit.body.a: found an extension of msgpack, wanted a value"},
      {parts_of(a + bytes({0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0})),
       "run.submit.body.a: found 9223372036854775808, wanted an integer of at most 63 bits"},
      {parts_of(a + bytes({0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0})),
       "run.submit.body.a: found NaN, wanted a finite number; what is not known is left out"},
      {parts_of(a + bytes({0xca, 0xff, 0x80, 0, 0})),
       "run.submit.body.a: found an infinity, wanted a finite number; what is not known is left "
       "out"},
      {parts_of(a + bytes({0xa1, 0xff})), "run.submit.body.a: found a text that is not UTF-8"},
      {parts_of(bytes({0x81, 1, 1})), "run.submit.body: found an integer as a key, wanted a text"},
      {parts_of(bytes({0x81, 0x80, 1})), "run.submit.body: found a map as a key, wanted a text"},
      {parts_of(bytes({0x82, 0xa1}) + "a" + bytes({1, 0xa1}) + "a" + bytes({1})),
       "run.submit.body: the key \"a\" comes twice in one map; keep one of them"},
      {parts_of(a + bytes({0xdd, 0xff, 0xff, 0xff, 0xff})),
       "run.submit.body.a: found a list of 4294967295 items, wanted at most 65536"},
      {parts_of(a + bytes({0xdc, 0xff, 0xff})),
       "run.submit.body.a: found a list of 65535 items in a part of 6 bytes"},
      {parts_of(a + bytes({0xde, 0, 9})),
       "run.submit.body.a: found a map of 9 items in a part of 6 bytes"},
  };
  for (const auto& [parts, says] : cases) CHECK(undecodable(parts) == says);
}

TEST_CASE("lists and maps may be nested 28 deep, and no deeper", "[transport]") {
  // Returns a map that contains nested lists.
  const auto nested = [](int lists) {
    return bytes({0x81, 0xa1}) + "a" + std::string(static_cast<std::size_t>(lists), '\x91') +
           bytes({1});
  };
  CHECK(decode_parts(parts_of(nested(27))));
  std::string path = "run.submit.body.a";
  for (int list = 0; list < 27; ++list) path += "[0]";
  CHECK(undecodable(parts_of(nested(28))) == path + ": nested deeper than 28 levels");
  CHECK_FALSE(undecodable(parts_of(nested(100'000))).empty());
}

TEST_CASE("a text has at most 64 KiB", "[transport]") {
  Message message;
  message.type = "run.submit";
  message.body.set("a", std::string(65536, 'x'));
  const auto parts = encode(message);
  REQUIRE(parts);
  CHECK(decode_parts(*parts));
  message.body.set("a", std::string(65537, 'x'));
  REQUIRE_FALSE(encode(message));
  CHECK(encode(message).error().text ==
        "run.submit.body.a: found a text of 64.0 KiB (65537 bytes), wanted at most 64 KiB");
}

TEST_CASE("a repeated key is detected in long maps too", "[transport]") {
  std::string body = bytes({0xde, 0, 100});
  for (int i = 0; i < 100; ++i)
    body += bytes({0xa3}) + std::to_string(i == 99 ? 150 : 100 + i) + bytes({1});
  CHECK(undecodable(parts_of(body)) ==
        "run.submit.body: the key \"150\" comes twice in one map; keep one of them");
}

TEST_CASE("the size of a body is limited by its type", "[transport]") {
  Message message;
  message.type = "node.heartbeat";
  message.body.set("a", std::string(3000, 'x'));
  REQUIRE_FALSE(encode(message));
  CHECK(encode(message).error().text ==
        "node.heartbeat: found 3006 bytes of body and 0 of payload, wanted at most 2048 in all");

  message.type = "run.submit";
  auto parts = *encode(message);
  const std::string envelope = bytes({0x81, 0xa4}) + "type" + bytes({0xae}) + "node.heartbeat";
  parts[0] = prelude(envelope.size(), parts[2].size());
  parts[1] = envelope;
  CHECK(undecodable(parts) ==
        "node.heartbeat: found 3006 bytes of body and 0 of payload, wanted at most 2048 in all");

  message.body = Value::Map{};
  message.payload = {std::string(std::size_t{1} << 20, 'x')};
  CHECK_FALSE(encode(message));
  message.payload = std::vector<std::string>(9, "x");
  CHECK_FALSE(encode(message));
}

TEST_CASE("a message that decode() would refuse is not encoded", "[transport]") {
  Message message;
  message.type = "run.submit";
  message.body = 3;
  CHECK_FALSE(encode(message));
  message.body = Value::Map{};
  message.type = "Run Submit";
  CHECK_FALSE(encode(message));
  message.type = "run.submit";
  message.incarnation = std::uint64_t{1} << 63;
  CHECK_FALSE(encode(message));
  message.incarnation = 0;
  message.run = std::string(5000, 'x');
  CHECK_FALSE(encode(message));
}

TEST_CASE("numbers that are not finite are encoded as nil", "[transport]") {
  Message message;
  message.type = "step";
  message.body.set("loss", std::nan(""));
  message.body.set("norm", -HUGE_VAL);
  const auto back = decode_parts(*encode(message));
  REQUIRE(back);
  CHECK(to_json(back->body) == R"({"loss":null,"norm":null})");
}

TEST_CASE("texts must be valid UTF-8", "[transport]") {
  const auto reads = [](const std::string& text) {
    return decode_parts(parts_of(bytes({0x81, 0xa1}) + "a" +
                                 bytes({0xa0 + static_cast<int>(text.size())}) + text))
        .ok();
  };
  for (const auto* good : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8e\xad"}) {
    INFO(good);
    CHECK(reads(good));
  }
  // Cut off, stray continuation, overlong, surrogate, beyond the last character.
  for (const auto* bad : {"\xc3", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82"})
    CHECK_FALSE(reads(bad));
}

TEST_CASE("decoding allocates at most twice the message and 64 KiB", "[transport]") {
  const auto check = [](const std::vector<std::string>& parts) {
    const std::vector<std::string_view> views(parts.begin(), parts.end());
    std::size_t size = 0;
    for (const auto view : views) size += view.size();
    const Allocations allocations;
    const bool read = decode(views).ok();
    INFO(size << " bytes, " << (read ? "read" : "refused"));
    CHECK(allocations.bytes() <= 2 * size + (std::size_t{64} << 10));
    return read;
  };
  // Small values cost the most memory per byte; the longest list that is accepted is near the
  // limit.
  int longest = 0;
  for (const int count : {1, 100, 500, 700, 900, 1000, 1100, 1500, 5000, 65535}) {
    const std::string list = bytes({0x81, 0xa1}) + "a" + bytes({0xdc, count >> 8, count & 0xff}) +
                             std::string(static_cast<std::size_t>(count), '\x01');
    if (check(parts_of(list))) longest = count;
    const std::string maps = bytes({0x81, 0xa1}) + "a" + bytes({0xdc, count >> 8, count & 0xff}) +
                             std::string(static_cast<std::size_t>(count), '\x80');
    check(parts_of(maps));
    std::string keys = bytes({0xde, count >> 8, count & 0xff});
    for (int i = 0; i < count; ++i)
      keys += bytes({0xa3, 'a' + i % 26, 33 + i / 26 % 90, 33 + i / 2340, 1});
    check(parts_of(keys));
    std::string texts = bytes({0x81, 0xa1}) + "a" + bytes({0xdc, count >> 8, count & 0xff});
    for (int i = 0; i < count; ++i) texts += bytes({0xb0}) + std::string(16, 'x');
    check(parts_of(texts));
  }
  CHECK(longest >= 900);
  CHECK(longest < 5000);
  check(parts_of(bytes({0x81, 0xa1}) + "a" + bytes({0xdb, 0xff, 0xff, 0xff, 0xff})));
  check(parts_of(bytes({0xdf, 0xff, 0xff, 0xff, 0xff})));
  check({std::string(100'000, 'x'), "", ""});
  check(parts_of(bytes({0x80}), std::string(4096, '\x91')));
  auto with_payload = parts_of(bytes({0x80}));
  with_payload.push_back(std::string(1'000'000, 'x'));
  CHECK(check(with_payload));
}

TEST_CASE("arbitrary bytes give a message or an error with a text", "[transport]") {
  const auto good = *encode(a_message());
  std::mt19937 random(1);
  const auto below = [&](std::size_t count) { return random() % count; };
  for (int round = 0; round < 20'000; ++round) {
    auto parts = good;
    // Changes, cuts or extends parts, then corrects the sizes, so that decoding gets further.
    for (auto changes = 1 + below(4); changes > 0; --changes) {
      auto& part = parts[below(3)];
      if (part.empty()) continue;
      switch (below(3)) {
        case 0:
          part[below(part.size())] = static_cast<char>(below(256));
          break;
        case 1:
          part.resize(below(part.size()));
          break;
        default:
          part.insert(below(part.size()), 1, static_cast<char>(below(256)));
      }
    }
    if (below(8) != 0) parts[0] = prelude(parts[1].size(), parts[2].size());
    const auto message = decode_parts(parts);
    if (!message) {
      CHECK_FALSE(message.error().text.empty());
      continue;
    }
    const auto again = encode(*message);
    REQUIRE(again);
    const auto same = decode_parts(*again);
    REQUIRE(same);
    CHECK(same->body == message->body);
  }
}

TEST_CASE("every message type has a row, a sender, a size and a handler", "[transport]") {
  for (const auto& type : message_types()) {
    INFO(type.name);
    CHECK(find_message_type(type.name) == &type);
    CHECK(type.bytes > 0);
    CHECK_FALSE(type.from.empty());
    CHECK_FALSE(type.handlers.empty());
    CHECK_FALSE(type.help.empty());
  }
  CHECK_FALSE(find_message_type("run.submi"));
  CHECK_FALSE(find_message_type(""));
  CHECK(largest_message() == std::size_t{4} << 20);
}

TEST_CASE("the handler check finds missing, foreign and repeated message types", "[transport]") {
  CHECK(handles_all(Handler::conversation, {"ack"}));
  CHECK_FALSE(handles_all(Handler::conversation, {}));
  CHECK_FALSE(handles_all(Handler::conversation, {"ack", "hello"}));
  CHECK_FALSE(handles_all(Handler::conversation, {"ack", "ack"}));
  CHECK_FALSE(handles_all(Handler::client, {"answer", "ack"}));
}

TEST_CASE("the message page and the Python list match the message table", "[transport]") {
  check_golden(TROUPE_ROOT "/docs/reference/messages.md", messages_page());
  check_golden(TROUPE_ROOT "/clients/python/troupe/messages.py", python_messages());
}

TEST_CASE("each role may send only its own message types", "[transport]") {
  CHECK(may_send({Role::operator_}, "run.stop"));
  CHECK_FALSE(may_send({Role::node}, "run.stop"));
  CHECK(may_send({Role::head}, "stage.start"));
  CHECK_FALSE(may_send({Role::node, Role::daemon, Role::operator_}, "stage.start"));
  CHECK_FALSE(may_send({Role::operator_}, "step_done"));
  CHECK(may_send({Role::node, Role::operator_}, "step_done"));
  CHECK_FALSE(may_send({}, "hello"));
  CHECK_FALSE(may_send({Role::head}, "no.such.type"));
}
