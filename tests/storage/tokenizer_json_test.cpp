#include <string>

#include "catch.h"
#include "core/json.h"
#include "storage/data/documents.h"
#include "storage/files/files.h"
#include "storage/tokenizer/tokenizer.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

Value golden_tokenizer(const std::string& name) {
  const auto bytes = disk_files()->read(TROUPE_TEST_DATA "/../golden/tokenizers/" + name + ".json");
  REQUIRE(bytes);
  const auto value = parse_json(bytes->text());
  REQUIRE(value);
  return *value->find("tokenizer");
}

std::string refusal_of(const Value& json) {
  const auto tokenizer = Tokenizer::read(to_json(json));
  return tokenizer ? "none" : tokenizer.error().text;
}

/// Returns the error after a value of a tokenizer's top level was replaced by JSON.
std::string refusal_with(const std::string& form, const std::string& key, const std::string& json) {
  auto tree = golden_tokenizer(form);
  auto value = parse_json(json);
  REQUIRE(value);
  tree.set(key, std::move(*value));
  return refusal_of(tree);
}

}  // namespace

TEST_CASE("what a tokenizer.json has and nobody understands is an error by its path", "[storage]") {
  CHECK(refusal_with("gpt2", "more", "1").starts_with("more: is not known here"));
  CHECK(refusal_with("gpt2", "truncation", R"({"max_length": 512})") ==
        "truncation: is set, which cuts or fills texts; set it to null in the file");
  CHECK(refusal_with("gpt2", "normalizer", R"({"type": "NFKC"})")
            .starts_with("normalizer.type: is \"NFKC\"; known are BertNormalizer, "));
  CHECK(refusal_with("gpt2", "normalizer", R"({"type": "Sequence", "normalizers": [
                     {"type": "NFC"}, {"type": "NFC", "form": 2}]})")
            .starts_with("normalizer.normalizers[1].form: is not known here"));
  CHECK(refusal_with("gpt2", "pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
                     {"type": "ByteLevel"}, {"type": "BertPreTokenizer"}]})") ==
        "pre_tokenizer.pretokenizers[1]: follows ByteLevel, which was wanted as the last one");
  CHECK(refusal_with("gpt2", "pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\w+"},
                     "behavior": "Isolated", "invert": false})") ==
        "pre_tokenizer.pattern.Regex: is \"\\w+\"; only the patterns of GPT-2, Llama 3 and Qwen2 "
        "are known");
  CHECK(refusal_with("t5", "pre_tokenizer", R"({"type": "Metaspace", "replacement": "__"})") ==
        "pre_tokenizer.replacement: is \"__\"; one character was wanted");
  CHECK(refusal_with("t5", "pre_tokenizer", R"({"type": "Metaspace", "replacement": "_",
                     "prepend_scheme": "last"})") ==
        "pre_tokenizer.prepend_scheme: is \"last\"; one of these was wanted: always, first, never");
  CHECK(refusal_with("gpt2", "decoder", R"({"type": "CTC"})")
            .starts_with("decoder.type: is \"CTC\"; known are ByteFallback, "));
  CHECK(refusal_with("bert", "post_processor", R"({"type": "TemplateProcessing", "pair": [],
                     "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}],
                     "special_tokens": {}})") ==
        "post_processor.single[0].SpecialToken.id: is \"[X]\", which is not in special_tokens");
  CHECK(refusal_with("bert", "post_processor", R"({"type": "BertProcessing", "sep": ["a", 99999],
                     "cls": ["b", 1]})") ==
        "post_processor: has the token 99999, which is not in the vocabulary");
  CHECK(refusal_with("bert", "model", R"({"type": "WordLevel", "vocab": {}})") ==
        "model.type: is \"WordLevel\"; known are BPE, Unigram and WordPiece");
  CHECK(refusal_with("gpt2", "added_tokens", R"([{"id": 7, "content": "<x>"}])")
            .starts_with("added_tokens[0].id: is 7, which is the id of "));
}

TEST_CASE("settings of a model that would change tokens are refused", "[storage]") {
  const auto with = [](const std::string& form, const std::string& key, Value value) {
    auto tree = golden_tokenizer(form);
    tree.find("model")->set(key, std::move(value));
    return refusal_of(tree);
  };
  CHECK(with("gpt2", "dropout", 0.1) ==
        "model.dropout: is 0.1; only tokenizers without it are read");
  CHECK(with("gpt2", "end_of_word_suffix", "</w>") ==
        "model.end_of_word_suffix: is \"</w>\"; only tokenizers without it are read");
  CHECK(with("llama2", "unk_token", "<none>") ==
        "model.unk_token: is \"<none>\", which is not in the vocabulary");
  CHECK(with("t5", "byte_fallback", true) ==
        "model.byte_fallback: is set, but the vocabulary lacks \"<0x00>\"");
  CHECK(with("t5", "unk_id", 100'000).starts_with("model.unk_id: is 100000; an integer from 0 to"));
  CHECK(with("bert", "unk_token", "[NONE]") ==
        "model.unk_token: is \"[NONE]\", which is not in the vocabulary");
}

TEST_CASE("a tokenizer cannot make a text explode", "[storage]") {
  const std::string doubling =
      R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  std::string steps = doubling;
  for (int i = 0; i < 9; ++i) steps += "," + doubling;
  CHECK(refusal_with("llama2", "normalizer",
                     R"({"type": "Sequence", "normalizers": [)" + steps + "]}")
            .starts_with("normalizer: has 10 steps that could make a text 1024"));
  CHECK(refusal_with("llama2", "decoder", R"({"type": "Sequence", "decoders": [)" + steps + "]}")
            .starts_with("decoder: has 10 steps that could make a text 1024"));
}

TEST_CASE("rules for characters that are damaged are refused", "[storage]") {
  const auto with = [](const std::string& rules) {
    return refusal_with("t5", "normalizer",
                        R"({"type": "Precompiled", "precompiled_charsmap": ")" + rules + "\"}");
  };
  const std::string place = "normalizer.precompiled_charsmap: ";
  CHECK(with("?") == place + "is no base64 of at least 4 bytes");
  CHECK(with("/////w==") ==
        place + "has a tree of 4294967295 bytes; a multiple of 4, and at most 0, was wanted");
  // One unit, whose offset leads out of the tree: no rule is found.
  CHECK(with("BAAAAAD///8=") == "none");
}

TEST_CASE("the time for a text is about linear in its length", "[storage]") {
  // A quadratic method would need minutes for each of these.
  const std::string letters(1'000'000, 'a');
  std::string mixed;
  while (mixed.size() < 1'000'000) mixed += "the dog\u00e9  \u4f60\u0301x.\n";
  std::string marks = "a";
  while (marks.size() < 1'000'000) marks += "\u0301\u0316";
  for (const auto* form : {"gpt2", "llama3", "qwen2", "llama2", "llama2_before", "gemma", "bert",
                           "t5", "unigram_bytes"}) {
    INFO(form);
    const auto tokenizer = Tokenizer::read(to_json(golden_tokenizer(form)));
    REQUIRE(tokenizer);
    for (const auto& text :
         {letters, mixed, marks, std::string(1'000'000, ' '), std::string(1'000'000, '\n')}) {
      const auto ids = tokenizer->encode(text);
      CHECK(tokenizer->decode(ids).ok());
      CHECK(ids.size() <= text.size() + 1);
    }
  }
}

TEST_CASE("bytes that are no UTF-8 pass through the tokenizers that have tokens for them",
          "[storage]") {
  const std::string text = "a\xff\xc3 \xe4\xbd z";
  for (const auto* form : {"gpt2", "llama3", "qwen2"}) {
    INFO(form);
    const auto tokenizer = Tokenizer::read(to_json(golden_tokenizer(form)));
    REQUIRE(tokenizer);
    CHECK(*tokenizer->decode(tokenizer->encode(text)) == text);
  }
  for (const auto* form : {"llama2", "bert", "t5", "unigram_bytes"}) {
    INFO(form);
    const auto tokenizer = Tokenizer::read(to_json(golden_tokenizer(form)));
    REQUIRE(tokenizer);
    CHECK(tokenizer->decode(tokenizer->encode(text)).ok());
  }
}

TEST_CASE("documents have the special tokens of the tokenizer around them", "[storage]") {
  const auto bert = Tokenizer::read(to_json(golden_tokenizer("bert")));
  const auto llama2 = Tokenizer::read(to_json(golden_tokenizer("llama2")));
  REQUIRE(bert);
  REQUIRE(llama2);
  const auto texts_of = [](const Tokenizer& tokenizer, const std::string& path,
                           const std::string& contents) {
    std::vector<std::string> texts;
    const auto status = for_each_document(path, contents, &tokenizer,
                                          [&](const std::vector<std::int32_t>& tokens) -> Status {
                                            texts.emplace_back();
                                            for (const auto id : tokens)
                                              texts.back() += tokenizer.token(id) + " ";
                                            return Done{};
                                          });
    REQUIRE(status);
    return texts;
  };
  const std::string lines = R"({"text":"the"}
{"text":"the"}
)";
  using Texts = std::vector<std::string>;
  CHECK(texts_of(*bert, "a.txt", "the\nthe") == Texts{"[CLS] the the [SEP] "});
  CHECK(texts_of(*bert, "a.jsonl", lines) == Texts{"[CLS] the [SEP] ", "[CLS] the [SEP] "});
  CHECK(texts_of(*llama2, "a.txt", "the") == Texts{"<s> \u2581the "});
  // "</s>" is an added token of this tokenizer, but its template has nothing behind a text.
  CHECK(texts_of(*llama2, "a.jsonl", lines) == Texts{"<s> \u2581the </s> ", "<s> \u2581the </s> "});

  const std::string example = R"({"prompt":"the","answer":" the"})";
  const auto status =
      for_each_example("a.jsonl", example, LineKind::examples, &*bert, [&](Example read) -> Status {
        CHECK(read.prompt.front() == bert->around().before[0]);
        CHECK(read.prompt.size() == 2);
        CHECK(read.answer.back() == bert->around().behind[0]);
        CHECK(read.answer.size() == 2);
        return Done{};
      });
  CHECK(status);
}
