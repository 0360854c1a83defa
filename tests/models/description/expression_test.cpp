#include "models/description/expression.h"

#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::models;

namespace {

Names some_names() {
  Names names;
  names.add("width", 32);
  names.add("heads", 4);
  names.add("rate", 0.25);
  names.add("tied", true);
  names.add("block", "basic");
  names.add("widths", Value::List{8, 16, 24});
  names.add("missing", Value());
  return names;
}

/// The value as JSON, or the error.
std::string value_of(std::string_view text) {
  const auto expression = Expression::parse(text);
  if (!expression) return expression.error().text;
  const auto value = expression->evaluate(some_names());
  return value ? to_json(*value) : value.error().text;
}

std::string text_of(std::string_view text) {
  const auto parsed = Template::parse(text);
  if (!parsed) return parsed.error().text;
  const auto value = parsed->evaluate(some_names());
  return value ? to_json(*value) : value.error().text;
}

}  // namespace

TEST_CASE("expressions bind as in Python", "[models][description]") {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"7 - 2 - 1", "4"},
      {"2 ** 3 ** 2", "512"},
      {"-2 ** 2", "-4"},
      {"2 ** -1", "0.5"},
      {"1.5 ** 2", "2.25"},
      {"7 // 2", "3"},
      {"-7 // 2", "-4"},
      {"-7 % 3", "2"},
      {"7 % -3", "-2"},
      {"8 * width // 3", "85"},
      {"width / heads", "8"},
      {"width / 5", "6.4"},
      {"width / heads % 2 == 0", "true"},
      {"1.5 // 1", "1"},
      {"0.02 / sqrt(2 * 8)", "0.005"},
      {"not 1 == 2", "true"},
      {"true or false and false", "true"},
      {"not tied or tied", "true"},
      {"1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 != 2", "true"},
      {"1 == 1.0", "true"},
      {"block == 'basic'", "true"},
      {"block == 1", "false"},
      {"missing == none", "true"},
      {"widths[1]", "16"},
      {"widths[-1]", "24"},
      {"widths[count(widths) - 1] + 1", "25"},
      {"if(tied, 'wte', 'lm_head')", "\"wte\""},
      {"if(width > 64, widths[9], 1)", "1"},
      {"tied or widths[9] == 1", "true"},
      {"min(3, 1.5, 2)", "1.5"},
      {"max(3, width)", "32"},
      {"ceil_to(85, 256)", "256"},
      {"ceil_to(256, 256)", "256"},
      {"ceil_to(-5, 4)", "-4"},
      {".5 + 1e3", "1000.5"},
      {"- - 3", "3"},
      {"none", "null"},
      {"9223372036854775807", "9223372036854775807"},
  };
  for (const auto& [text, value] : cases) {
    CAPTURE(text);
    CHECK(value_of(text) == value);
  }
}

TEST_CASE("an error in an expression names the character", "[models][description]") {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"", "character 1 of \"\": an operand is missing"},
      {"4 * ", "character 5 of \"4 * \": an operand is missing"},
      {"4 * widht",
       "character 5 of \"4 * widht\": no value has the name 'widht'; did you mean 'width'?"},
      {"4 5", "character 3 of \"4 5\": an operator is missing, or this is too much"},
      {"(1", "character 3 of \"(1\": ')' is missing"},
      {"widths[0", "character 9 of \"widths[0\": ']' is missing"},
      {"widths[3]", "character 7 of \"widths[3]\": the list has 3 entries, and none at 3"},
      {"width[0]", "character 6 of \"width[0]\": [...] follows a list, and this is an integer"},
      {"1 < 2 < 3", "character 7 of \"1 < 2 < 3\": comparisons do not chain; join two by 'and'"},
      {"1 / 0", "character 3 of \"1 / 0\": division by zero"},
      {"1.0 / 0", "character 5 of \"1.0 / 0\": the result is no finite number"},
      {"9223372036854775807 + 1",
       "character 21 of \"9223372036854775807 + 1\": the result does not fit into an integer of "
       "64 bits"},
      {"(-9223372036854775807 - 1) // -1",
       "character 28 of \"(-9223372036854775807 - 1) // -1\": the result does not fit into an "
       "integer of 64 bits"},
      {"2 ** 64", "character 3 of \"2 ** 64\": the result does not fit into an integer of 64 bits"},
      {"2 ** 0.5", "character 3 of \"2 ** 0.5\": an exponent is an integer"},
      {"9223372036854775808",
       "character 1 of \"9223372036854775808\": this is no integer of 64 bits"},
      {"sqrt(-1)", "character 1 of \"sqrt(-1)\": sqrt() of a negative number"},
      {"sqrt(1, 2)", "character 1 of \"sqrt(1, 2)\": 'sqrt' takes 1 argument, and gets 2"},
      {"exec('x')",
       "character 1 of \"exec('x')\": there is no function 'exec'; there are if, count, min, max, "
       "sqrt and ceil_to"},
      {"'x", "character 1 of \"'x\": the text has no second '"},
      {"tied + 1", "character 6 of \"tied + 1\": a number is wanted here, but this is a boolean"},
      {"if(1, 2, 3)",
       "character 1 of \"if(1, 2, 3)\": a condition must be true or false, and is an integer"},
      {"3x", "character 1 of \"3x\": a number ends in a letter"},
      {"ceil_to(1, 0)",
       "character 1 of \"ceil_to(1, 0)\": ceil_to() rounds up to multiples of a positive integer"},
      {"ceil_to(1.5, 2)",
       "character 1 of \"ceil_to(1.5, 2)\": this takes integers, and one is a number with a "
       "fraction"},
  };
  for (const auto& [text, error] : cases) {
    CAPTURE(text);
    CHECK(value_of(text) == error);
  }
}

TEST_CASE("the size and the depth of an expression are bounded", "[models][description]") {
  std::string sum = "1";
  for (int i = 0; i < 127; ++i) sum += "+1";
  CHECK(value_of(sum) == "128");
  CHECK(value_of(sum + "+1").ends_with("at most 256 numbers, names and operators"));
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" +
           std::string(static_cast<std::size_t>(depth), ')');
  };
  CHECK(value_of(nested(30)) == "1");
  CHECK(value_of(nested(2000)).ends_with("at most 32 brackets or signs inside each other"));
  CHECK(value_of(std::string(2000, '-') + "1").ends_with("inside each other"));
  CHECK(value_of(std::string(5000, ' ')).ends_with("at most 4096 characters"));
}

TEST_CASE("a text takes the values of expressions in braces", "[models][description]") {
  CHECK(text_of("ln_f") == "\"ln_f\"");
  CHECK(text_of("") == "\"\"");
  CHECK(text_of("h.{heads + 1}.{block}") == "\"h.5.basic\"");
  CHECK(text_of("{if(tied, 'wte', 'lm_head')}") == "\"wte\"");
  CHECK(text_of("{'}'}") == "\"}\"");
  CHECK(text_of("{missing}") == "null");
  CHECK(text_of("a{missing}") == "none cannot be a part of a text");
  CHECK(text_of("{") == "character 1 of \"{\": '{' without a '}' behind it");
  CHECK(text_of("a}") == "character 2 of \"a}\": '}' without a '{' before it");
  CHECK(text_of("{1 +}") == "character 4 of \"1 +\": an operand is missing");
}
