#include "storage/tokenizer/words.h"

#include "catch.h"
#include "core/json.h"
#include "storage/files/files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(first_word(text));
    text.remove_prefix(words.back().size());
  }
  return words;
}

}  // namespace

TEST_CASE("a sample sentence is split into the words of GPT-2", "[storage]") {
  CHECK(words_of("Hello world!  It's 3pm\n\n") ==
        std::vector<std::string>{"Hello", " world", "!", " ", " It", "'s", " 3", "pm", "\n\n"});
}

TEST_CASE("texts are split like the regular expression in words.h", "[storage]") {
  // Expected values from Python's regex module with the expression in words.h.
  const auto bytes = disk_files()->read(TROUPE_TEST_DATA "/data/words.jsonl");
  REQUIRE(bytes);
  std::string_view lines = bytes->text();
  int cases = 0;
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    const auto line = parse_json(lines.substr(0, end));
    lines.remove_prefix(end + 1);
    REQUIRE(line);
    std::vector<std::string> expected;
    for (const auto& word : *line->find("words")->list()) expected.push_back(*word.text());
    CHECK(words_of(*line->find("text")->text()) == expected);
    ++cases;
  }
  CHECK(cases == 317);
}

TEST_CASE("bytes that are not UTF-8 count as characters", "[storage]") {
  CHECK(words_of("a\xff\xfe z") == std::vector<std::string>{"a", "\xff\xfe", " z"});
}

TEST_CASE("every byte maps to a printable character and back", "[storage]") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::string back;
  REQUIRE(from_printable(to_printable(all), back));
  CHECK(back == all);
  CHECK(to_printable(" a\n\xff") == "\u0120a\u010a\u00ff");
  CHECK_FALSE(from_printable("a b", back));
  CHECK_FALSE(from_printable("\u0144", back));
}
