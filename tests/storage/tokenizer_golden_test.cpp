#include <string>
#include <vector>

#include "catch.h"
#include "core/json.h"
#include "core/text.h"
#include "storage/files/files.h"
#include "storage/tokenizer/text_bytes.h"
#include "storage/tokenizer/text_stream.h"
#include "storage/tokenizer/tokenizer.h"

using namespace troupe;
using namespace troupe::storage;

// tests/golden/make_tokenizers.py made the tokenizers, and asked the library what they do.

namespace {

using Ids = std::vector<std::int32_t>;

const std::string golden_folder = TROUPE_TEST_DATA "/../golden/tokenizers/";
const std::vector<std::string> forms = {"gpt2",   "roberta",       "llama3",      "qwen2",
                                        "llama2", "llama2_before", "bpe_unknown", "gemma",
                                        "bert",   "bert_cased",    "t5",          "unigram_bytes"};

Value read_golden(const std::string& name) {
  const auto bytes = disk_files()->read(golden_folder + name + ".json");
  REQUIRE(bytes);
  auto value = parse_json(bytes->text());
  REQUIRE(value);
  return std::move(*value);
}

Ids ids_of(const Value& list) {
  Ids ids;
  for (const auto& id : *list.list()) ids.push_back(static_cast<std::int32_t>(*id.integer()));
  return ids;
}

Tokenizer tokenizer_of(const Value& json) {
  auto tokenizer = Tokenizer::read(to_json(json));
  INFO((tokenizer ? "" : tokenizer.error().text));
  REQUIRE(tokenizer);
  return std::move(*tokenizer);
}

/// Returns the number of texts whose tokens differ from those of the library.
int differences(const Value& golden, const Value& json) {
  static const auto texts = read_golden("texts");
  const auto tokenizer = tokenizer_of(json);
  int count = 0;
  for (std::size_t i = 0; i < texts.list()->size(); ++i) {
    const auto& expected = (*golden.find("cases")->list())[i];
    const auto ids = tokenizer.encode(*(*texts.list())[i].text());
    count += ids != ids_of((*expected.list())[0]);
  }
  return count;
}

/// Replaces bytes that are no UTF-8, as the library does.
std::string in_utf8(std::string_view text) {
  std::string good;
  while (!text.empty()) {
    const auto next = first_character(text);
    append_utf8(good, next.code);
    text.remove_prefix(next.bytes);
  }
  return good;
}

Value& value_at(Value& value, std::initializer_list<std::string_view> path) {
  auto* found = &value;
  for (const auto key : path) {
    found = found->find(key);
    REQUIRE(found);
  }
  return *found;
}

}  // namespace

TEST_CASE("tokens and texts are those of the library", "[storage]") {
  const auto texts = read_golden("texts");
  for (const auto& form : forms) {
    const auto golden = read_golden(form);
    const auto tokenizer = tokenizer_of(*golden.find("tokenizer"));
    const auto& around = *golden.find("around")->list();
    CHECK(tokenizer.around().before == ids_of(around[0]));
    CHECK(tokenizer.around().behind == ids_of(around[1]));
    for (std::size_t i = 0; i < texts.list()->size(); ++i) {
      const auto& text = *(*texts.list())[i].text();
      INFO(form << ", text " << i << ": " << text);
      const auto& expected = *(*golden.find("cases")->list())[i].list();
      const auto ids = tokenizer.encode(text);
      CHECK(ids == ids_of(expected[0]));
      const auto decoded = tokenizer.decode(ids);
      REQUIRE(decoded);
      CHECK(in_utf8(*decoded) == (expected[1].is_null() ? text : *expected[1].text()));
    }
  }
}

TEST_CASE("texts that are decoded token by token are the whole text", "[storage]") {
  const auto texts = read_golden("texts");
  for (const auto& form : forms) {
    const auto golden = read_golden(form);
    const auto tokenizer = tokenizer_of(*golden.find("tokenizer"));
    for (const auto& value : *texts.list()) {
      const auto& text = *value.text();
      // Here a byte that follows turns one before it, which was given as "A", into no character.
      if (text.starts_with("<0x41>") && form == "unigram_bytes") continue;
      INFO(form << ": " << text);
      const auto ids = tokenizer.encode(text);
      TextStream stream(tokenizer, {});
      std::string streamed;
      const auto whole = *tokenizer.decode(ids);
      for (const auto id : ids) {
        streamed += stream.next(id);
        if (is_utf8(whole)) CHECK(is_utf8(streamed));
      }
      streamed += stream.rest();
      CHECK(streamed == whole);

      // Behind a prompt the text goes on as in one text.
      const auto cut = static_cast<std::ptrdiff_t>(ids.size() / 2);
      const Ids prompt(ids.begin(), ids.begin() + cut);
      TextStream behind(tokenizer, prompt);
      std::string rest;
      for (auto id = ids.begin() + cut; id != ids.end(); ++id) rest += behind.next(*id);
      rest += behind.rest();
      const auto begun = *tokenizer.decode(prompt);
      if (is_utf8(begun) && !begun.ends_with("\xef\xbf\xbd")) CHECK(begun + rest == streamed);
    }
  }
}

TEST_CASE("planted faults in tokenizers change tokens", "[storage]") {
  const auto faulty = [](const std::string& form, const auto& change) {
    const auto golden = read_golden(form);
    auto json = *golden.find("tokenizer");
    CHECK(differences(golden, json) == 0);
    change(json);
    return differences(golden, json);
  };
  const auto rule_of = [](Value& json) -> Value& {
    return value_at((*value_at(json, {"pre_tokenizer", "pretokenizers"}).list())[0],
                    {"pattern", "Regex"});
  };
  const auto other_rule = [&](const std::string& form) {
    auto other = read_golden(form);
    return rule_of(value_at(other, {"tokenizer"}));
  };
  const auto llama3 = other_rule("llama3"), qwen2 = other_rule("qwen2");
  CHECK(faulty("llama3", [&](Value& json) { rule_of(json) = qwen2; }) > 0);
  CHECK(faulty("qwen2", [&](Value& json) { rule_of(json) = llama3; }) > 0);
  CHECK(faulty("qwen2", [](Value& json) { json.set("normalizer", {}); }) > 0);
  CHECK(faulty("gpt2", [](Value& json) {
          value_at(json, {"pre_tokenizer"}).set("add_prefix_space", true);
        }) > 0);
  const auto without = [&](const std::string& form, const std::string& key) {
    return faulty(form, [&](Value& json) { value_at(json, {"model"}).set(key, false); });
  };
  CHECK(without("llama3", "ignore_merges") > 0);
  CHECK(without("llama2", "byte_fallback") > 0);
  CHECK(without("gemma", "byte_fallback") > 0);
  CHECK(without("unigram_bytes", "byte_fallback") > 0);
  CHECK(without("bpe_unknown", "fuse_unk") > 0);
  CHECK(faulty("llama2", [](Value& json) {
          value_at(json, {"pre_tokenizer"}).set("prepend_scheme", "always");
        }) > 0);
  for (const auto* key : {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"})
    CHECK(faulty("bert", [&](Value& json) { value_at(json, {"normalizer"}).set(key, false); }) > 0);
  CHECK(faulty("bert", [](Value& json) {
          value_at(json, {"model"}).set("max_input_chars_per_word", 3);
        }) > 0);
  CHECK(faulty("t5", [](Value& json) { json.set("normalizer", {}); }) > 0);
  // "xx" and "x" + "x" have equal scores: the slightest difference shows which of them won.
  CHECK(faulty("t5", [](Value& json) {
          for (auto& row : *value_at(json, {"model", "vocab"}).list())
            if (*(*row.list())[0].text() == "xx") (*row.list())[1] = -5.000000001;
        }) > 0);
  for (const auto& [form, key] : {std::pair("gpt2", "lstrip"),
                                  {"gpt2", "rstrip"},
                                  {"bert", "single_word"},
                                  {"bert", "normalized"}})
    CHECK(faulty(form, [&, key = key](Value& json) {
            for (auto& token : *value_at(json, {"added_tokens"}).list()) token.set(key, false);
          }) > 0);
}

TEST_CASE("tokens stand for the bytes of their text, wherever they are cut", "[storage]") {
  // Two of its characters have several bytes.
  const std::string text = "The caf\u00e9 of Zo\u00eb, and a word more.";
  for (const std::string form : {"llama2", "gemma", "gpt2", "llama3"}) {
    const auto golden = read_golden(form);
    const auto tokenizer = Tokenizer::read(to_json(*golden.find("tokenizer")));
    REQUIRE(tokenizer);
    const auto all = tokenizer->encode(text);
    CAPTURE(form, tokenizer->kind(), all.size());
    for (std::size_t begin = 1; begin < all.size(); ++begin) {
      const auto before = tokenizer->decode(std::span(all).first(begin));
      REQUIRE(before);
      // Between two characters.
      if (!text.starts_with(*before)) continue;
      const auto bytes = text_bytes(*tokenizer, all[begin - 1], std::span(all).subspan(begin));
      REQUIRE(bytes);
      CHECK(*bytes == static_cast<std::int64_t>(text.size() - before->size()));
    }
    const auto end = tokenizer->end_of_text();
    if (end) CHECK(*text_bytes(*tokenizer, all[0], std::vector{end->id}) == 0);
    const auto beyond = static_cast<std::int32_t>(tokenizer->vocabulary());
    CHECK_FALSE(text_bytes(*tokenizer, all[0], std::vector{beyond}));
  }
}
