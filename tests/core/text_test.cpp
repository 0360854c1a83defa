#include "core/text.h"

#include "catch.h"

using namespace troupe;

TEST_CASE("bytes that are not UTF-8 are malformed characters of one byte", "[core]") {
  for (const std::string text : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                                 "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    CHECK(first_character(text).code == replacement_character);
    CHECK(first_character(text).bytes == 1);
    CHECK(first_character(text).is_malformed());
    CHECK_FALSE(is_utf8("good " + text));
  }
  CHECK_FALSE(first_character("\uFFFD").is_malformed());
  CHECK(is_utf8("Grüße, 東京, 🎭 \uFFFD"));
  CHECK(is_utf8(""));
}

TEST_CASE("every character is written and read as UTF-8", "[core]") {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (code == 0xd800) code = 0xe000;
    std::string text;
    append_utf8(text, code);
    const auto read = first_character(text);
    REQUIRE((read.code == code && read.bytes == text.size()));
  }
}

TEST_CASE("escaping keeps valid characters and replaces invalid ones", "[core]") {
  CHECK(escaped("a<b>&\"c'") == "a&lt;b&gt;&amp;&quot;c&#39;");
  CHECK(escaped("Grüße, 東京, 🎭") == "Grüße, 東京, 🎭");
  CHECK(escaped(std::string("\0\x1b", 2)) == "\uFFFD\uFFFD");
  CHECK(escaped("\xc0\xaf") == "\uFFFD\uFFFD");            // An overlong "/".
  CHECK(escaped("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD");  // A surrogate.
  CHECK(escaped("\xe2\x82") == "\uFFFD\uFFFD");            // The first two bytes of three.
  CHECK(escaped("東京東京", 2) == "東京…");
  CHECK(escaped("東京", 2) == "東京");
}

TEST_CASE("long numbers have commas", "[core]") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(31887) == "31,887");
  CHECK(grouped(-100) == "-100");
  CHECK(grouped(-1234567) == "-1,234,567");
}

TEST_CASE("edit_distance counts insertions, removals, replacements and swaps", "[core]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("gpipe", "gpipe") == 0);
  CHECK(edit_distance("gpie", "gpipe") == 1);
  CHECK(edit_distance("gpippe", "gpipe") == 1);
  CHECK(edit_distance("gpixe", "gpipe") == 1);
  CHECK(edit_distance("gippe", "gpipe") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("a suggested word is similar to the unknown one", "[core]") {
  const std::vector<std::string_view> words = {"global", "micro"};
  CHECK(nearest("gobal", words) == "global");
  CHECK(nearest("golbal", words) == "global");
  CHECK(nearest("mcrio", words) == "micro");
  CHECK(nearest("banana", words).empty());
  CHECK(nearest("", words).empty());
  CHECK(nearest(std::string(100000, 'a'), words).empty());
}

TEST_CASE("long lines are broken between words, and what continues them is indented", "[core]") {
  CHECK(wrapped("one two three", 80) == "one two three");
  CHECK(wrapped("one two three four", 13, 2) == "one two three\n  four");
  CHECK(wrapped("one two three", 12, 2) == "one two\n  three");
  CHECK(wrapped("a\n\nb c\n", 80) == "a\n\nb c\n");
  CHECK(wrapped("", 80).empty());
  // The indentation of a line is not a place to break it.
  CHECK(wrapped("  longer-than-that", 8, 2) == "  longer\n  -than-\n  that");
  // Characters count, not bytes, and none is cut.
  CHECK(wrapped("äöü äöü äöü", 7, 1) == "äöü äöü\n äöü");
  CHECK(wrapped("äöüäöü", 4, 1) == "äöüä\n öü");
  // Malformed bytes count as characters.
  CHECK(wrapped("\xff\xff\xff", 80) == "\xff\xff\xff");
  // Too narrow to be read: the terminal breaks it.
  CHECK(wrapped("one two three", 8) == "one two three");
}

TEST_CASE("what continues a line of a list stands below its last column", "[core]") {
  CHECK(wrapped_in_columns("  --head TEXT   address of the head", 28) ==
        "  --head TEXT   address of\n      the head");
  CHECK(wrapped_in_columns("  --to TEXT   address of the head", 28) ==
        "  --to TEXT   address of the\n              head");
  CHECK(wrapped_in_columns("ok  disk  12 GiB are free here\nok\n", 22) ==
        "ok  disk  12 GiB are\n          free here\nok\n");
  // No column, or one that begins too far to the right.
  CHECK(wrapped_in_columns(" one two three four", 16) == " one two three\n     four");
  CHECK(wrapped_in_columns("one two three  four five six", 20) ==
        "one two three  four\n    five six");
  CHECK(wrapped_in_columns("one two  three", 8) == "one two  three");
}
