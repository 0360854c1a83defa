#include "core/json.h"

#include <cmath>
#include <string>

#include "catch.h"

using namespace troupe;

TEST_CASE("parsed JSON values have their positions in the text", "[core]") {
  const auto read =
      parse_json("{\n  \"a\": [1, -2.5, true],\n  \"b\": {\"c\": \"x\", \"d\": 7}\n}");
  REQUIRE(read.ok());
  const Value& root = *read;
  CHECK(root.position == Position{1, 1});
  const auto& list = *root.find("a")->list();
  CHECK(*list[0].integer() == 1);
  CHECK(list[0].position == Position{2, 9});
  CHECK(list[1].number() == -2.5);
  CHECK(list[1].position == Position{2, 12});
  CHECK(list[2].position == Position{2, 18});
  const Value& b = *root.find("b");
  CHECK(b.position == Position{3, 8});
  CHECK(*b.find("c")->text() == "x");
  CHECK(b.find("d")->position == Position{3, 24});
  CHECK((*b.map())[1].position == Position{3, 19});
}

TEST_CASE("invalid JSON is an error with line and column", "[core]") {
  const auto error = [](std::string_view text) { return parse_json(text).error().text; };
  CHECK(error("{\n \"a\": }").starts_with("2:7: this is not JSON"));
  CHECK(error("{\"a\": 1, \"a\": 2}").starts_with("1:10: the key \"a\" comes twice"));
  CHECK(error("").starts_with("1:1: this is not JSON"));
  CHECK(error("[1] 2").find("this is not JSON") != std::string::npos);
  CHECK(error(std::string(100, '[')).find("nested deeper than 64") != std::string::npos);
}

TEST_CASE("a key that comes twice is found in objects of any size", "[core]") {
  for (int keys = 1; keys <= 40; ++keys)
    for (int twice = 0; twice < keys; ++twice) {
      std::string text = "{";
      for (int i = 0; i < keys; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
      CAPTURE(keys, twice);
      CHECK(parse_json(text + "\"k\": {\"k0\": 1}}").ok());
      const std::string name = "k" + std::to_string(twice);
      const auto again = parse_json(text + "\"" + name + "\": 0}");
      REQUIRE(!again.ok());
      CHECK(again.error().text.find("the key \"" + name + "\" comes twice") != std::string::npos);
    }
}

TEST_CASE("texts are written with what JSON escapes", "[core]") {
  CHECK(to_json(Value("plain ~ text")) == "\"plain ~ text\"");
  CHECK(to_json(Value("\"a\\b\"")) == R"("\"a\\b\"")");
  CHECK(to_json(Value(std::string("\n\t\x01\0", 4))) == R"("\n\t\u0001\u0000")");
  CHECK(to_json(Value("d\xc3\xa9j\xc3\xa0")) == "\"d\xc3\xa9j\xc3\xa0\"");
  CHECK(to_json(Value("")) == "\"\"");
}

TEST_CASE("an error in JSON has the position of the wrong token", "[core]") {
  const auto error = [](std::string_view text) { return parse_json(text).error().text; };
  CHECK(error("{\"a\" 1}") ==
        "1:6: this is not JSON: syntax error while parsing object separator - unexpected number "
        "literal; expected ':'");
  CHECK(error("{\"a\": 1 \"b\"}").starts_with("1:9: "));
  CHECK(error("{\n  \"a\": tru,\n \"b\": 1}") ==
        "2:8: this is not JSON: syntax error while parsing value - invalid literal");
  CHECK(error("{\"a\": 12abc}") ==
        "1:9: this is not JSON: syntax error while parsing object - invalid literal; expected '}'");
  CHECK(error("[1,, 2]").starts_with("1:4: "));
  CHECK(error("[1, 2").starts_with("1:5: "));
  CHECK(error("nul").starts_with("1:1: "));
}

TEST_CASE("numbers are written in the shortest form that reads back equal", "[core]") {
  CHECK(to_json(Value(0.1)) == "0.1");
  CHECK(to_json(Value(3e-4)) == "3e-04");
  CHECK(to_json(Value(std::int64_t{1} << 60)) == "1152921504606846976");
  for (double x : {1.0 / 3, 1e300, 5e-324, -0.0, 123456789.123}) {
    const double again = parse_json(to_json(Value(x)))->number();
    CHECK(again == x);
    CHECK(std::signbit(again) == std::signbit(x));
  }
}

TEST_CASE("a written value reads back equal", "[core]") {
  Value value;
  value.set("text", "quotes \" and \n lines, \u00e9");
  value.set("list", Value::List{Value(1), Value(2.5), Value()});
  Value inner;
  inner.set("flag", false);
  value.set("inner", inner);
  value.set("empty", Value(Value::Map{}));
  CHECK(*parse_json(to_json(value)) == value);
  CHECK(*parse_json(to_json_lines(value)) == value);
}
