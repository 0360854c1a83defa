// Samples of texts: documents that do not look into each other, masks, cut spans, and pairs.

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "catch.h"
#include "storage/data/data_tools.h"
#include "storage/data/dataset.h"
#include "storage/data/micro_batches.h"
#include "storage/files/memory_files.h"
#include "tests/storage/data_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t no = -100;

/// Returns the needs of a model that takes all fields of a text.
DataNeeds text_needs(std::int64_t context) {
  return {.context = context,
          .vocabulary = 100,
          .ignore = no,
          .inputs = {{{"tokens", {context}, DType::i32}, {.below = 100}},
                     {{"span", {context, 2}, DType::i32}, {context + 1, true}},
                     {{"positions", {context}, DType::i32}, {.below = context}}},
          .target = {context}};
}

/// Returns the needs of a model with an encoder and a decoder.
DataNeeds pair_needs(std::int64_t source, std::int64_t target, std::int64_t vocabulary = 100) {
  return {.context = source,
          .vocabulary = vocabulary,
          .ignore = no,
          .inputs = {{{"source", {source}, DType::i32}, {.below = vocabulary}},
                     {{"span", {source, 2}, DType::i32}, {source + 1, true}},
                     {{"decoder_tokens", {target}, DType::i32}, {.below = vocabulary}},
                     {{"memory_span", {target, 2}, DType::i32}, {source + 1, true}}},
          .target = {target}};
}

void put_tokens(Files& files, const Tokens& tokens) {
  REQUIRE(write_token_shard(files, "a.bin", TokenShard::Width::bits16, tokens));
}

std::unique_ptr<Dataset> opened(Files& files, const std::string& spec, const DataNeeds& needs) {
  auto data = open_dataset(spec, needs, files);
  if (!data) FAIL(data.error().text);
  return std::move(*data);
}

std::string fault(Files& files, const std::string& spec, const DataNeeds& needs) {
  const auto data = open_dataset(spec, needs, files);
  return data ? "" : data.error().text;
}

using Fields = std::map<std::string, Tokens>;  // And the "target".

Fields read(const Dataset& data, const Place& place) {
  const auto& shape = data.shape();
  Fields all;
  SampleSpans to;
  const auto add = [&](const std::string& name, const Shape& of) {
    auto& tokens = all[name];
    tokens.resize(static_cast<std::size_t>(of.count()));
    return std::as_writable_bytes(std::span(tokens));
  };
  to.inputs.push_back(add(shape.input_name, shape.input));
  for (const auto& field : shape.more) to.inputs.push_back(add(field.name, field.shape));
  to.target = add("target", shape.target);
  REQUIRE(data.read(place, to));
  return all;
}

Tokens counting(std::int32_t first, std::int32_t count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

}  // namespace

TEST_CASE("documents that stand apart do not look into each other", "[storage]") {
  MemoryFiles files;
  put_tokens(files, {1, 2, 9, 3, 4, 5, 9, 6, 7, 8, 8, 9, 5});
  const auto data = opened(files, "a.bin?documents=apart&end=9", text_needs(4));
  CHECK(data->fields() == std::vector<std::string>{"tokens", "span", "positions", "token_types"});
  REQUIRE(data->count() == 3);
  CHECK(read(*data, {0, 0}) == Fields{{"tokens", {1, 2, 9, 3}},
                                      {"span", {0, 3, 0, 3, 0, 3, 3, 4}},
                                      {"positions", {0, 1, 2, 0}},
                                      {"target", {2, 9, no, 4}}});
  CHECK(read(*data, {0, 1}) == Fields{{"tokens", {4, 5, 9, 6}},
                                      {"span", {0, 3, 0, 3, 0, 3, 3, 4}},
                                      {"positions", {0, 1, 2, 0}},
                                      {"target", {5, 9, no, 7}}});
  // A document that ends with the window has no target behind it.
  CHECK(read(*data, {0, 2}) == Fields{{"tokens", {7, 8, 8, 9}},
                                      {"span", {0, 4, 0, 4, 0, 4, 0, 4}},
                                      {"positions", {0, 1, 2, 3}},
                                      {"target", {8, 8, 9, no}}});
  // A model of one input takes the tokens.
  const auto plain = opened(files, "a.bin?documents=apart&end=9", {.context = 4, .ignore = no});
  CHECK(read(*plain, {0, 0}) == Fields{{"tokens", {1, 2, 9, 3}}, {"target", {2, 9, no, 4}}});
}

TEST_CASE("a padded sample is a document, or a piece of a long one", "[storage]") {
  MemoryFiles files;
  put_tokens(files, {1, 2, 9, 3, 4, 5, 9, 9, 6, 7, 8, 5, 9, 6, 7});
  const auto data = opened(files, "a.bin?documents=padded&end=9&pad=50", text_needs(3));
  REQUIRE(data->count() == 5);
  CHECK(read(*data, {0, 0}) == Fields{{"tokens", {1, 2, 9}},
                                      {"span", {0, 3, 0, 3, 0, 3}},
                                      {"positions", {0, 1, 2}},
                                      {"target", {2, 9, no}}});
  CHECK(read(*data, {0, 1})["target"] == Tokens{4, 5, 9});  // The 9 behind it is no sample.
  CHECK(read(*data, {0, 2})["target"] == Tokens{7, 8, 5});
  CHECK(read(*data, {0, 3}) == Fields{{"tokens", {5, 9, 50}},
                                      {"span", {0, 2, 0, 2, 0, 0}},
                                      {"positions", {0, 1, 0}},
                                      {"target", {9, no, no}}});
  CHECK(read(*data, {0, 4})["tokens"] == Tokens{6, 7, 50});
}

TEST_CASE("padded and packed documents teach the same pairs of tokens", "[storage]") {
  MemoryFiles files;
  Tokens tokens;
  for (std::int32_t document = 0; document < 40; ++document) {
    for (std::int32_t i = 0; i < 1 + document * 7 % 11; ++i)
      tokens.push_back(10 + (i + document) % 60);
    tokens.push_back(9);
  }
  while ((tokens.size() - 1) % 8 != 0) tokens.push_back(9);
  put_tokens(files, tokens);
  const auto pairs = [&](const std::string& documents) {
    const auto data = opened(files, "a.bin?end=9&documents=" + documents, text_needs(8));
    std::map<std::pair<std::int32_t, std::int32_t>, int> all;
    for (std::int64_t i = 0; i < data->count(); ++i) {
      const auto sample = read(*data, {0, i});
      for (std::size_t k = 0; k < 8; ++k)
        if (const auto target = sample.at("target")[k]; target != no)
          ++all[{sample.at("tokens")[k], target}];
    }
    return all;
  };
  CHECK(pairs("apart") == pairs("padded"));
}

TEST_CASE("masks hide 15 % of the tokens, and none of the special ones", "[storage]") {
  MemoryFiles files;
  constexpr std::int32_t count = 40'000;
  Tokens tokens;
  for (std::int32_t i = 0; i < count; ++i) tokens.push_back(i % 50 == 0 ? 3 : 10 + i * 7 % 80);
  put_tokens(files, tokens);
  const std::string spec = "a.bin?mask=0.15&mask_id=4&special_first=2&special_last=5";
  const auto data = opened(files, spec, text_needs(100));
  REQUIRE(data->count() == count / 100);
  std::map<std::string, double> counts;
  for (std::int64_t i = 0; i < data->count(); ++i) {
    const auto sample = read(*data, {0, i});
    for (std::size_t k = 0; k < 100; ++k) {
      const auto was = tokens[static_cast<std::size_t>(i) * 100 + k];
      const auto is = sample.at("tokens")[k], target = sample.at("target")[k];
      if (target == no) {
        REQUIRE(is == was);
        continue;
      }
      REQUIRE(target == was);
      REQUIRE(was != 3);
      const bool is_special = is >= 2 && is <= 5;
      REQUIRE((!is_special || is == 4));
      ++counts["all"];
      ++counts[is == 4 ? "masked" : is == was ? "stays" : "other"];
    }
  }
  CHECK(counts["all"] / (count * 0.98) == Approx(0.15).margin(0.006));
  CHECK(counts["masked"] / counts["all"] == Approx(0.8).margin(0.02));
  CHECK(counts["other"] / counts["all"] == Approx(0.1).margin(0.015));
  CHECK(counts["stays"] / counts["all"] == Approx(0.1).margin(0.015));

  // A mask depends on pass, sample, position and seed alone.
  CHECK(read(*data, {0, 7}) == read(*opened(files, spec, text_needs(100)), {0, 7}));
  CHECK(read(*data, {0, 7}) != read(*data, {1, 7}));
  CHECK(read(*data, {0, 7}) != read(*opened(files, spec + "&seed=2", text_needs(100)), {0, 7}));
  CHECK(read(*data, {0, 7})["span"] == read(*data, {1, 7})["span"]);
}

TEST_CASE("masks do not touch ends and padding", "[storage]") {
  MemoryFiles files;
  put_tokens(files, {10, 9, 11, 12, 9});
  const auto data =
      opened(files, "a.bin?mask=0.9&mask_id=4&documents=padded&end=9&pad=7", text_needs(4));
  REQUIRE(data->count() == 2);
  for (std::int64_t pass = 0; pass < 50; ++pass) {
    const auto sample = read(*data, {pass, 0});
    CHECK(sample.at("tokens")[1] == 9);
    CHECK(sample.at("tokens")[2] == 7);
    CHECK(Tokens(sample.at("target").begin() + 1, sample.at("target").end()) == Tokens{no, no, no});
  }
}

TEST_CASE("a decoder restores the spans that are cut out", "[storage]") {
  MemoryFiles files;
  put_tokens(files, counting(2, 300));
  const auto needs = pair_needs(24, 12, 1000);
  const auto data = opened(files, "a.bin?corrupt=0.2&mean=2&end=1&start=5&pad=6", needs);
  // 26 - 5 cut out + 2 sentinels + the end make 24 tokens. As in T5, 2.5 is rounded to 2 spans.
  constexpr std::int32_t width = 26;
  REQUIRE(data->count() == 300 / width);
  for (std::int64_t pass = 0; pass < 20; ++pass)
    for (std::int64_t i = 0; i < data->count(); ++i) {
      const auto sample = read(*data, {pass, i});
      const auto& source = sample.at("source");
      const auto& target = sample.at("target");
      // Puts the spans back where their sentinels are.
      std::map<std::int32_t, Tokens> spans;
      std::int32_t sentinel = 0;
      std::size_t written = 0;
      for (; target[written] != 1; ++written) {
        if (target[written] > 900) sentinel = target[written];
        if (target[written] <= 900) spans[sentinel].push_back(target[written]);
      }
      Tokens text;
      std::int32_t next = 999;
      std::size_t own = 0;
      for (; source[own] != 1; ++own) {
        if (source[own] <= 900) {
          text.push_back(source[own]);
          continue;
        }
        CHECK(source[own] == next--);
        const auto& span = spans.at(source[own]);
        text.insert(text.end(), span.begin(), span.end());
      }
      CHECK(text == counting(2 + static_cast<std::int32_t>(i) * width, width));
      CHECK(spans.size() == 2);
      const auto rows = static_cast<std::int32_t>(own + 1);
      for (std::size_t k = 0; k < 24; ++k) {
        CHECK(sample.at("span")[2 * k] == 0);
        CHECK(sample.at("span")[2 * k + 1] == (k <= own ? rows : 0));
        if (k > own) CHECK(source[k] == 6);
      }
      for (std::size_t k = 0; k < 12; ++k) {
        CHECK(sample.at("memory_span")[2 * k + 1] == (k <= written ? rows : 0));
        CHECK(target[k] == (k <= written ? target[k] : no));
        const auto given = k == 0 ? 5 : k <= written ? target[k - 1] : 6;
        CHECK(sample.at("decoder_tokens")[k] == given);
      }
    }
  CHECK(read(*data, {0, 3}) != read(*data, {1, 3}));
  CHECK(read(*data, {4, 3}) ==
        read(*opened(files, "a.bin?corrupt=0.2&mean=2&end=1&start=5&pad=6", needs), {4, 3}));
}

TEST_CASE("lengths of corrupted texts are those of T5", "[storage]") {
  MemoryFiles files;
  put_tokens(files, counting(2, 4 * 568));
  // 512 source tokens are left of 568, and 114 are to be restored, with sentinels and ends.
  const std::string spec = "a.bin?corrupt=0.15&end=1&sentinel=32099";
  const auto data = opened(files, spec, pair_needs(512, 114, 32128));
  CHECK(data->count() == 4);
  const auto sample = read(*data, {0, 0});
  CHECK(sample.at("source").back() == 1);
  CHECK(sample.at("target").back() == 1);
  CHECK(sample.at("target").front() == 32099);
  CHECK(fault(files, spec, pair_needs(512, 113, 32128)) ==
        "a.bin: corrupt = 0.15, mean = 3 make 114 targets of 512 source tokens, and the model has "
        "room for 113");
}

TEST_CASE("sources with targets are cut to their lengths or padded", "[storage]") {
  MemoryFiles files;
  put(files, "a.jsonl",
      "{\"source\": \"ab\", \"target\": \"c\"}\n\n"
      "{\"source\": [1, 2, 3, 4, 5], \"target\": [6, 7, 8, 9], \"id\": 3}\n"
      "{\"source\": \"abcdef\", \"target\": \"uvwxyz\"}\n");
  const auto data = opened(files, "a.jsonl?start=3&pad=2", pair_needs(4, 3, 256));
  REQUIRE(data->count() == 3);
  CHECK(data->description() == "3 sources with targets, 2 of them cut to 4 and 3 tokens");
  CHECK(read(*data, {0, 0}) == Fields{{"source", {'a', 'b', '\n', 2}},
                                      {"span", {0, 3, 0, 3, 0, 3, 0, 0}},
                                      {"decoder_tokens", {3, 'c', 2}},
                                      {"memory_span", {0, 3, 0, 3, 0, 0}},
                                      {"target", {'c', '\n', no}}});
  CHECK(read(*data, {0, 1})["source"] == Tokens{1, 2, 3, 4});
  CHECK(read(*data, {0, 1})["target"] == Tokens{6, 7, 8});
  CHECK(read(*data, {0, 1})["decoder_tokens"] == Tokens{3, 6, 7});
  // A text that is cut keeps its end.
  CHECK(read(*data, {0, 2})["source"] == Tokens{'a', 'b', 'c', '\n'});
  CHECK(read(*data, {0, 2})["target"] == Tokens{'u', 'v', '\n'});
}

TEST_CASE("prompts with answers offer spans and positions", "[storage]") {
  MemoryFiles files;
  put(files, "a.jsonl", "{\"prompt\": [7, 8], \"answer\": [1]}\n");
  const auto data = opened(files, "a.jsonl?pad=5", text_needs(4));
  CHECK(read(*data, {0, 0}) == Fields{{"tokens", {7, 8, 1, 5}},
                                      {"span", {0, 3, 0, 3, 0, 3, 0, 0}},
                                      {"positions", {0, 1, 2, 0}},
                                      {"target", {no, 1, no, no}}});
}

TEST_CASE("a first and a second text stand side by side, with types", "[storage]") {
  MemoryFiles files;
  put(files, "a.jsonl",
      "{\"first\": [4, 5, 9], \"second\": [6, 9]}\n"
      "{\"first\": \"abcdef\", \"second\": \"uvwx\"}\n"
      "{\"first\": \"a\", \"second\": \"uvwxyz\"}\n");
  DataNeeds needs{.context = 8,
                  .vocabulary = 256,
                  .ignore = no,
                  .inputs = {{{"tokens", {8}, DType::i32}, {.below = 256}},
                             {{"span", {8, 2}, DType::i32}, {9, true}},
                             {{"token_types", {8}, DType::i32}, {.below = 2}}},
                  .target = {8}};
  const auto data = opened(files, "a.jsonl?mask=0.9&mask_id=1&pad=2", needs);
  REQUIRE(data->count() == 3);
  CHECK(data->description() ==
        "3 first texts with second ones, 2 of them cut to 8 tokens together");
  const auto whole = [&](std::int64_t sample) {
    // The target says what a masked token was.
    auto found = read(*data, {0, sample});
    for (std::size_t i = 0; i < 8; ++i)
      if (const auto was = found.at("target")[i]; was != no) found["tokens"][i] = was;
    return found;
  };
  CHECK(whole(0)["tokens"] == Tokens{4, 5, 9, 6, 9, 2, 2, 2});
  CHECK(whole(0)["token_types"] == Tokens{0, 0, 0, 1, 1, 0, 0, 0});
  CHECK(whole(0)["span"] == Tokens{0, 5, 0, 5, 0, 5, 0, 5, 0, 5, 0, 0, 0, 0, 0, 0});
  // The longer text is cut, before its end.
  CHECK(whole(1)["tokens"] == Tokens{'a', 'b', 'c', '\n', 'u', 'v', 'w', '\n'});
  CHECK(whole(1)["token_types"] == Tokens{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(whole(2)["tokens"] == Tokens{'a', '\n', 'u', 'v', 'w', 'x', 'y', '\n'});
  CHECK(read(*data, {0, 0}) != read(*data, {1, 0}));  // Each pass has masks of its own.
  CHECK(fault(files, "a.jsonl", needs).find("give mask and mask_id") != std::string::npos);
  CHECK(fault(files, "a.jsonl?mask=0.5&mask_id=1&documents=padded", needs).find("leave them out") !=
        std::string::npos);
  // Other texts have one type.
  put(files, "b.jsonl", "{\"text\": \"abc\"}\n");
  const auto plain = opened(files, "b.jsonl?mask=0.5&mask_id=1&documents=padded", needs);
  CHECK(read(*plain, {0, 0})["token_types"] == Tokens(8, 0));
}

TEST_CASE("the data decides the vocabulary of several inputs", "[storage]") {
  MemoryFiles files;
  put(files, "a.jsonl", "{\"source\": [1, 2, 41], \"target\": [6, 7]}\n");
  DataNeeds needs = pair_needs(4, 3, 0);
  for (auto& need : needs.inputs) need.of_vocabulary = !need.bounds.are_spans;
  CHECK(opened(files, "a.jsonl", needs)->classes() == 42);
  CHECK(opened(files, "a.jsonl?start=50", needs)->classes() == 51);
  CHECK(opened(files, "a.jsonl?pad=60", needs)->classes() == 61);
  put_tokens(files, counting(2, 90));
  CHECK(fault(files, "a.bin?corrupt=0.15&end=1", needs)
            .find("give sentinel, the highest of them, or set model.vocab") != std::string::npos);
}

TEST_CASE("the tokens of padding belong to the vocabulary", "[storage]") {
  MemoryFiles files;
  put_tokens(files, {1, 2, 9, 3, 4, 9, 7});
  put(files, "a.jsonl", "{\"prompt\": [7, 8], \"answer\": [1]}\n");
  put(files, "b.jsonl", "{\"first\": [7, 8], \"second\": [1]}\n");
  CHECK(opened(files, "a.bin?documents=padded&end=9&pad=120", text_needs(4))->classes() == 121);
  CHECK(opened(files, "a.jsonl?pad=120", text_needs(4))->classes() == 121);
  CHECK(opened(files, "b.jsonl?pad=120&mask=0.5&mask_id=3", text_needs(4))->classes() == 121);
}

TEST_CASE("documents may tell their source", "[storage]") {
  MemoryFiles files;
  put(files, "a.jsonl", "{\"text\": \"abc\", \"source\": \"book\", \"target\": 1}\n");
  CHECK(opened(files, "a.jsonl", {.context = 3})->count() == 1);
  put(files, "b.jsonl", "{\"tokens\": [1, 2, 3, 4], \"source\": \"book\", \"target\": 1}\n");
  CHECK(opened(files, "b.jsonl", {.context = 3})->count() == 1);
}

TEST_CASE("options of texts that make no sense are refused", "[storage]") {
  MemoryFiles files;
  put_tokens(files, counting(2, 90));
  const auto of_text = [&](const std::string& options) {
    return fault(files, "a.bin?" + options, text_needs(8));
  };
  CHECK(of_text("documents=apart")
            .ends_with("end, the token that ends a document, is not: "
                       "documents=apart&end=50256"));
  CHECK(of_text("documents=packed").find("apart (documents do not look into each other) or") !=
        std::string::npos);
  CHECK(of_text("mask=0.15").find("mask_id, the token of the mask, is missing") !=
        std::string::npos);
  CHECK(of_text("mask=0.15&mask_id=100").find("but there are 100 tokens") != std::string::npos);
  CHECK(of_text("mask=1.5&mask_id=4").ends_with("a number from 0.001 to 0.9 was wanted"));
  CHECK(of_text("mask=0.1&mask_id=4&special_last=99").find("so none is masked") !=
        std::string::npos);
  CHECK(of_text("mask=0.1&mask_id=4&special_first=9&special_last=3").find("is behind") !=
        std::string::npos);
  CHECK(of_text("mask=0.1&mask_id=4&corrupt=0.1&end=1").find("give one of them") !=
        std::string::npos);
  CHECK(of_text("corrupt=0.15&end=1&documents=apart").find("use documents=padded") !=
        std::string::npos);
  CHECK(of_text("corrupt=0.15").find("corrupt needs end") != std::string::npos);
  CHECK(of_text("corrupt=0.15&end=1")
            .find("has no field 'tokens': it has source, span, "
                  "decoder_tokens, memory_span") != std::string::npos);
  CHECK(fault(files, "a.bin?corrupt=0.15&end=98", pair_needs(24, 12))
            .find("the sentinels are the tokens from 99 to 99") == std::string::npos);
  CHECK(fault(files, "a.bin?corrupt=0.15&end=99", pair_needs(24, 12))
            .find("the end of which is 99; set sentinel") != std::string::npos);
  CHECK(fault(files, "a.bin?corrupt=0.15&end=99&sentinel=98", pair_needs(24, 12)).empty());
  CHECK(fault(files, "a.bin?corrupt=0.15&end=1&sentinel=100", pair_needs(24, 12))
            .find("and the text has 100 tokens") != std::string::npos);
  CHECK(fault(files, "a.bin?documents=apart&end=9", {.context = 8})
            .find("set model.loss.ignore = -100") != std::string::npos);
  CHECK(fault(files, "a.bin?corrupt=0.15&end=1", {.context = 8, .ignore = no})
            .ends_with("but the model takes one input"));
  put(files, "a.jsonl", "{\"source\": [1], \"target\": [2]}\n");
  CHECK(fault(files, "a.jsonl", {.context = 8, .ignore = no})
            .ends_with("but the model takes one input"));
  CHECK(fault(files, "a.jsonl?mask=0.1&mask_id=3", pair_needs(4, 4))
            .ends_with("and these are lines of two texts"));
  put(files, "b.jsonl", "{\"source\": [1], \"target\": [200]}\n");
  CHECK(fault(files, "b.jsonl", pair_needs(4, 4))
            .find("b.jsonl:1: the pair has the token 200, but the model's vocabulary has 100") !=
        std::string::npos);
}

TEST_CASE("a run that resumes anywhere reads the same masks", "[storage]") {
  MemoryFiles files;
  put_tokens(files, counting(10, 80));
  const auto contents = [&](std::int64_t from, std::int64_t to) {
    const auto data = opened(files, "a.bin?mask=0.3&mask_id=4", text_needs(8));
    const SampleOrder order(SampleOrder::Kind::shuffled, 5, data->count());
    const MicroBatches batches(*data, order, 4, 2, no);
    MemoryPool memory;
    std::vector<std::string> found;
    for (auto step = from; step < to; ++step)
      for (int m = 0; m < 2; ++m)
        found.push_back(to_string(batches.read(memory, step, m)->content));
    return found;
  };
  auto all = contents(0, 9);
  CHECK(contents(4, 9) == std::vector<std::string>(all.begin() + 8, all.end()));
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());  // Each pass has masks of its own.
}
