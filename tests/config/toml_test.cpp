#include "config/toml/toml.h"

#include "catch.h"
#include "core/json.h"

using namespace troupe;
using config::parse_toml;
using config::to_toml;

namespace {

std::string error_of(const std::string& text) { return parse_toml(text).error().text; }

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("TOML becomes a tree whose keys keep their order", "[config]") {
  const auto read = parse_toml(
      "z = 1\na = 2.5\n[table]\nlist = [1, \"two\", true]\ninline = { y = 1, x = -2 }\n");
  REQUIRE(read.ok());
  CHECK(to_json(*read) ==
        R"({"z":1,"a":2.5,"table":{"list":[1,"two",true],"inline":{"y":1,"x":-2}}})");
}

TEST_CASE("every key and value has a position", "[config]") {
  const auto read = parse_toml("[model]\nkind = \"gpt2\"\n\n[batch]\n  micro = 4\n");
  REQUIRE(read.ok());
  CHECK(read->find("model")->position == Position{1, 1});
  CHECK(read->find("model")->find("kind")->position == Position{2, 8});
  const auto& entry = read->find("batch")->map()->front();
  CHECK(entry.position == Position{5, 3});
  CHECK(entry.value.position == Position{5, 11});
}

TEST_CASE("columns count bytes", "[config]") {
  const auto read = parse_toml("a = { \"\u00e9\" = 1, b = 2 }\n");
  REQUIRE(read.ok());
  CHECK(read->find("a")->find("b")->position == Position{1, 21});
}

TEST_CASE("invalid TOML is an error with a position", "[config]") {
  CHECK(error_of("a = 1\nb = \n") ==
        "2:5: this is not TOML: key-value pair: expected value, saw '\\n'");
  CHECK(error_of("a = 1\na = 2\n").starts_with("2:5: this is not TOML: "));
  CHECK(error_of("a = 99999999999999999999\n").find("64 bits") != std::string::npos);
  CHECK(error_of("x = \"\xff\xfe\"\n").find("utf-8") != std::string::npos);
  CHECK(error_of("[[[a]]]\n").find("this is not TOML") != std::string::npos);
  CHECK(error_of("a = 2024-01-01\n") ==
        "1:5: no key takes a date or a time; put quotes around it if it is a text");
}

TEST_CASE("nesting is limited", "[config]") {
  CHECK(error_of(repeated("a.", 200000) + "a = 1").find("a key of more than 32 parts") !=
        std::string::npos);
  CHECK(error_of("[" + repeated("a . ", 200000) + "a]").find("more than 32 parts") !=
        std::string::npos);
  CHECK(error_of("a = " + repeated("[", 200000)).find("nested value depth") != std::string::npos);
  CHECK(error_of("a = " + repeated("{ a = ", 100000)).find("nested value depth") !=
        std::string::npos);
  CHECK(error_of(std::string(2 << 20, '#')).find("at most 1 MiB are read") != std::string::npos);
}

TEST_CASE("quotes and brackets inside a bare key or value are errors", "[config]") {
  for (const std::string text : {"a = 0\"\xce\xa3\"", "a = 0.\"\xce\xa3\"", "a = [1, 2'\xce\xa3']",
                                 "a = {b = +\"\xce\xa3\"}", "a = [\n1\"\xce\xa3\"]", "a\"b\" = 1"})
    CHECK(error_of(text).find("a quote in the middle of a key or a value") != std::string::npos);
  for (const std::string text : {"a = 0[\"\xce\xa3\"]", "a = 0{\"\xce\xa3\" = 1}", "a = [1[2]]",
                                 "a = {b = +[\"\xce\xa3\"]}", "a = [[1] [2]]"})
    CHECK(error_of(text).find("a bracket in the middle of a value") != std::string::npos);
  for (const std::string text :
       {"a = 0=\"\xce\xa3\"", "a = + =\"\xce\xa3\"", "a = {b = 1=\"\xce\xa3\"}"})
    CHECK(error_of(text).find("a second '=' in a value") != std::string::npos);
  const auto good = parse_toml(R"("a b"."c" = "d" # "e
['f']
g = [ "h", ["i"], {"j" = 'k', l."m" = """n"n"""},
  # "o
  "p" ]
[["q"."r"]]
s = {t = [ ], u = ''}
)");
  REQUIRE(good);
}

TEST_CASE("characters beyond ASCII are allowed only in quotes and comments", "[config]") {
  CHECK(error_of("x = 1\n\u00e9 = 2\n") ==
        "2:1: this is not TOML: outside of quotes only ASCII may stand; put a key or a text in "
        "quotes");
  CHECK(error_of("x = \u00e9\n").starts_with("1:5: this is not TOML: outside of quotes"));
  CHECK(error_of("x = \"\"\"a\\\n  \u00e9\"\"\"\n") ==
        "2:3: this is not TOML: after a backslash only ASCII may stand");
  const auto read = parse_toml(
      "\xef\xbb\xbf\"\u00e9\" = '\u00e9'  # \u00e9\n"
      "y = \"\"\"\n\u00e9\"\"\"\"\"\n"
      "z = '''\u00e9\\'''\n");
  REQUIRE(read.ok());
  CHECK(*read->find("\u00e9")->text() == "\u00e9");
  CHECK(*read->find("y")->text() == "\u00e9\"\"");
  CHECK(*read->find("z")->text() == "\u00e9\\");
}

TEST_CASE("dots in numbers and comments do not count as nested keys", "[config]") {
  CHECK(parse_toml("a = [" + repeated("0.5, ", 100) + "1.0]  # " + repeated(".", 100)).ok());
}

TEST_CASE("a value is written as TOML reads it", "[config]") {
  CHECK(to_toml(Value(true)) == "true");
  CHECK(to_toml(Value(-3)) == "-3");
  CHECK(to_toml(Value(3e-4)) == "3e-4");
  CHECK(to_toml(Value(1.0)) == "1.0");
  CHECK(to_toml(Value(0.25)) == "0.25");
  CHECK(to_toml(Value("a \"b\"\n\x01")) == "\"a \\\"b\\\"\\n\\u0001\"");
  CHECK(to_toml(Value(Value::List{0, 3, 6})) == "[0, 3, 6]");
  CHECK(to_toml(Value(Value::List{})) == "[]");
  Value table;
  table.set("kind", "cosine");
  table.set("two words", 1);
  CHECK(to_toml(table) == "{ kind = \"cosine\", \"two words\" = 1 }");
}

TEST_CASE("values written as TOML parse back equal", "[config]") {
  for (const Value& value :
       {Value(0.1), Value(1e300), Value(5e-324), Value(1e16), Value(-0.5), Value(INT64_MIN),
        Value("\u00e9 \\ \t"), Value(Value::List{1.5, "x", Value::List{}})}) {
    const auto read = parse_toml("x = " + to_toml(value));
    REQUIRE(read.ok());
    CHECK(*read->find("x") == value);
  }
}
