#include "core/printable.h"

#include "catch.h"

using namespace troupe;

TEST_CASE("printable replaces control characters and invalid UTF-8", "[core]") {
  CHECK(printable("") == "");
  CHECK(printable("node alpha, 4 GPUs: ok") == "node alpha, 4 GPUs: ok");
  CHECK(printable("Grüße, 你好, 🎭") == "Grüße, 你好, 🎭");
  CHECK(printable("\x1b]0;owned\x07") == "?]0;owned?");
  CHECK(printable("a\nerror: forged\r\tb") == "a error: forged  b");
  CHECK(printable("\x9b"
                  "31m") == "?31m");
  CHECK(printable("\xc2\x9b"
                  "31m") == "?31m");
  CHECK(printable("left\u202eright\u2066x\u2028y") == "left?right?x?y");
  // Invalid UTF-8: truncated, overlong, a surrogate, beyond the last plane.
  CHECK(printable("\xe4\xbd") == "??");
  CHECK(printable("\xc0\x9b") == "??");
  CHECK(printable("\xed\xa0\x80") == "???");
  CHECK(printable("\xf4\x90\x80\x80") == "????");
}

TEST_CASE("make_printable replaces control characters in all keys and texts of a value", "[core]") {
  Value value;
  value.set("na\x1bme", Value::List{"a\x07", 3, Value::Map{}});
  make_printable(value);
  const auto* list = value.find("na?me");
  REQUIRE(list);
  CHECK(*(*list->list())[0].text() == "a?");
  CHECK(*(*list->list())[1].integer() == 3);
}
