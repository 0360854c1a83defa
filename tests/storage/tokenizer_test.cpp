#include "storage/tokenizer/tokenizer.h"

#include <algorithm>
#include <map>

#include "catch.h"
#include "core/json.h"
#include "core/random.h"
#include "storage/files/memory_files.h"
#include "storage/tokenizer/words.h"
#include "tests/storage/data_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

using Ids = std::vector<std::int32_t>;

/// Returns the 256 bytes as tokens in order of their values, followed by `more`.
Value byte_vocabulary(const std::vector<std::string>& more) {
  Value vocab{Value::Map{}};
  for (int byte = 0; byte < 256; ++byte)
    vocab.set(to_printable(std::string(1, static_cast<char>(byte))), byte);
  for (const auto& word : more) vocab.set(word, static_cast<std::int64_t>(vocab.map()->size()));
  return vocab;
}

Value tokenizer_json() {
  Value model;
  model.set("type", "BPE");
  model.set("vocab", byte_vocabulary({"lo", "low", "er", "\u0120low", "<|endoftext|>"}));
  model.set("merges", Value::List{"l o", Value::List{"lo", "w"}, "e r", "\u0120 low"});
  Value splitter;
  splitter.set("type", "ByteLevel");
  splitter.set("add_prefix_space", false);
  Value added;
  added.set("id", 260);
  added.set("content", "<|endoftext|>");
  added.set("lstrip", false);
  Value root;
  root.set("version", "1.0");
  root.set("added_tokens", Value::List{added});
  root.set("normalizer", {});
  root.set("pre_tokenizer", splitter);
  Value decoder;
  decoder.set("type", "ByteLevel");
  root.set("decoder", decoder);
  root.set("model", model);
  return root;
}

Tokenizer make(const Value& json) {
  auto tokenizer = Tokenizer::read(to_json(json));
  INFO((tokenizer ? "" : tokenizer.error().text));
  REQUIRE(tokenizer);
  return std::move(*tokenizer);
}

std::string error_of(const Value& json) {
  const auto tokenizer = Tokenizer::read(to_json(json));
  return tokenizer ? "none" : tokenizer.error().text;
}

/// Merges by the definition: repeatedly the best of all pairs.
Ids merged_by_definition(const Tokenizer& tokenizer, std::string_view word) {
  std::vector<std::string> parts;
  for (const char c : word) parts.push_back(to_printable(std::string(1, c)));
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  std::map<std::string, std::int32_t> ids;
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) ids.emplace(tokenizer.token(id), id);
  const auto root = parse_json(tokenizer.json());
  REQUIRE(root);
  const auto& merges = *root->find("model")->find("merges")->list();
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& merge = *merges[rank].text();
    ranks[{merge.substr(0, merge.find(' ')), merge.substr(merge.find(' ') + 1)}] = rank;
  }
  while (true) {
    std::size_t best = merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto rank = ranks.find({parts[i], parts[i + 1]});
          rank != ranks.end() && rank->second < best) {
        best = rank->second;
        at = i;
      }
    if (best == merges.size()) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Ids found;
  for (const auto& part : parts) found.push_back(ids[part]);
  return found;
}

}  // namespace

TEST_CASE("words are merged by rank and special tokens are recognized", "[storage]") {
  const auto tokenizer = make(tokenizer_json());
  CHECK(tokenizer.vocabulary() == 261);
  CHECK(tokenizer.encode("lower") == Ids{257, 258});
  CHECK(tokenizer.encode("low lower") == Ids{257, 259, 258});
  CHECK(tokenizer.encode("a<|endoftext|>low") == Ids{97, 260, 257});
  CHECK(tokenizer.encode("<|endoftext") ==
        Ids{60, 124, 101, 110, 100, 111, 102, 116, 101, 120, 116});
  CHECK(tokenizer.encode("") == Ids{});
  CHECK(*tokenizer.decode(Ids{257, 259, 258, 260}) == "low lower<|endoftext|>");
  CHECK(tokenizer.end_of_text()->id == 260);
  CHECK(tokenizer.decode(Ids{1, 261}).error().text == "token 261 is not in the vocabulary of 261");
}

TEST_CASE("add_prefix_space puts a blank before the text", "[storage]") {
  auto json = tokenizer_json();
  json.find("pre_tokenizer")->set("add_prefix_space", true);
  CHECK(make(json).encode("low") == Ids{259});
  CHECK(make(json).encode(" low") == Ids{259});
}

TEST_CASE("vocab.json and merges.txt of GPT-2 make the same tokenizer", "[storage]") {
  MemoryFiles files;
  REQUIRE(files.make_directory("gpt2"));
  put(files, "gpt2/vocab.json", to_json(*tokenizer_json().find("model")->find("vocab")));
  put(files, "gpt2/merges.txt", "#version: 0.2\nl o\nlo w\ne r\r\n\u0120 low\n\n");
  for (const auto* path : {"gpt2", "gpt2/vocab.json"}) {
    const auto tokenizer = Tokenizer::open(files, path);
    REQUIRE(tokenizer);
    CHECK(tokenizer->encode("low lower<|endoftext|>") == Ids{257, 259, 258, 260});
  }
  put(files, "gpt2/tokenizer.json", to_json(tokenizer_json()));
  CHECK(Tokenizer::open(files, "gpt2")->encode("low") == Ids{257});
}

TEST_CASE("damaged tokenizer tables are refused with the reason", "[storage]") {
  const auto with_merge = [](Value merge) {
    auto json = tokenizer_json();
    json.find("model")->find("merges")->list()->push_back(std::move(merge));
    return error_of(json);
  };
  CHECK(with_merge("q q") == "model.merges[4]: joins \"q\" and \"q\", which gives no token");
  CHECK(with_merge("xyz q") ==
        "model.merges[4]: joins \"xyz\" and \"q\", of which one is no token");
  CHECK(with_merge("lo") ==
        "model.merges[4]: is \"lo\"; two tokens with a blank between were wanted");
  CHECK(with_merge(3) == "model.merges[4]: is neither a text nor a list of two texts");
  CHECK(with_merge("l o") == "model.merges[4]: is a pair that an earlier merge has too");

  const auto with_token = [](const std::string& word, Value id) {
    auto json = tokenizer_json();
    json.find("model")->find("vocab")->set(word, std::move(id));
    return error_of(json);
  };
  CHECK(with_token("zz", 5) == "model.vocab: the id 5 is given to two tokens");
  CHECK(with_token("zz", -1) == "model.vocab: the id of \"zz\" is no integer from 0 to 65797");
  CHECK(with_token("zz", 2'000'000'000) ==
        "model.vocab: the id of \"zz\" is no integer from 0 to 65797");
  CHECK(with_token("a b", 300) ==
        "model.vocab: the token \"a b\" has a character that stands for no byte; the "
        "pre_tokenizer is ByteLevel");
  CHECK(with_token("", 300) == "model.vocab: there is a token without a character");
  auto without_b = tokenizer_json();
  auto& words = *without_b.find("model")->find("vocab")->map();
  words.erase(words.begin() + 'B');
  CHECK(error_of(without_b) ==
        "model.vocab: has no token for the byte 66; a byte-level tokenizer has one for each");
  CHECK(error_of(3) == "the file: is 3; a map was wanted");
}

TEST_CASE("random bytes survive encoding and decoding", "[storage]") {
  const auto tokenizer = make(tokenizer_json());
  for (std::uint32_t i = 0; i < 200; ++i) {
    std::string text;
    for (std::uint32_t j = 0; j < 1 + i % 50; ++j)
      text += static_cast<char>(philox({i, j, 0, 0}, {1, 2})[0] % (i % 2 ? 256 : 128));
    CHECK(*tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("training merges the most frequent pair and the lowest tokens among equals",
          "[storage]") {
  // "ab" occurs four times, then "ab"+"c" twice; "xy" occurs once and stays apart.
  const auto tokenizer = train_tokenizer("abc abd abc abe xy", 1'000);
  REQUIRE(tokenizer);
  std::vector<std::string> made;
  for (std::int32_t id = 256; id < tokenizer->vocabulary(); ++id)
    made.push_back(tokenizer->token(id));
  // Once "ab" is one token, " " precedes it three times.
  CHECK(made == std::vector<std::string>{"ab", "\u0120ab", "<|endoftext|>"});
  CHECK(tokenizer->token(0) == "!");
}

TEST_CASE("a trained tokenizer reads back equal from its JSON", "[storage]") {
  std::string text;
  for (std::uint32_t i = 0; i < 3'000; ++i) {
    const auto word = philox({i, 0, 0, 0}, {3, 4})[0] % 40;
    for (std::uint32_t j = 0; j <= word % 7; ++j)
      text += static_cast<char>('a' + philox({word, j, 0, 0}, {5, 6})[0] % 5);
    text += i % 9 ? " " : ".\n";
  }
  const auto trained = train_tokenizer(text, 400);
  REQUIRE(trained);
  CHECK(trained->vocabulary() > 300);
  CHECK(train_tokenizer(text, 400)->json() == trained->json());
  const auto read = Tokenizer::read(trained->json());
  REQUIRE(read);
  CHECK(read->json() == trained->json());
  CHECK(read->encode(text) == trained->encode(text));
  CHECK(trained->encode(text).size() < text.size() / 3);
  CHECK(*trained->decode(trained->encode(text)) == text);

  for (auto left = std::string_view(text).substr(0, 2'000); !left.empty();) {
    const auto word = first_word(left);
    REQUIRE(trained->encode(word) == merged_by_definition(*trained, word));
    left.remove_prefix(word.size());
  }
}

TEST_CASE("a word of a million letters encodes to its longest tokens and decodes", "[storage]") {
  // Training merges pairs of equal tokens: 2 letters, then 4, and so on up to 256.
  const auto tokenizer = train_tokenizer(std::string(5'000, 'a'), 300);
  REQUIRE(tokenizer);
  const auto id_of = [&](std::size_t letters) {
    std::int32_t id = 0;
    while (tokenizer->token(id) != std::string(letters, 'a')) ++id;
    return id;
  };
  const std::string word(1'000'000, 'a');
  // 1,000,000 = 3,906 * 256 + 64. A method that looks at all pairs before each merge would need
  // 10^12 steps here and would not end in time.
  Ids wanted(3'906, id_of(256));
  wanted.push_back(id_of(64));
  const auto encoded = tokenizer->encode(word);
  CHECK(encoded.size() == wanted.size());
  CHECK((encoded == wanted));
  CHECK((*tokenizer->decode(encoded) == word));
}

TEST_CASE("an unsupported vocabulary size is refused", "[storage]") {
  CHECK(train_tokenizer("text", 256).error().text ==
        "a vocabulary of 256 tokens cannot be trained; 257 to 1048576 can");
  CHECK(train_tokenizer("", 300)->vocabulary() == 257);
}
