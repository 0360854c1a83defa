#include "storage/data/dataset.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "catch.h"
#include "storage/data/data_tools.h"
#include "storage/data/idx.h"
#include "storage/data/micro_batches.h"
#include "storage/data/token_shard.h"
#include "storage/files/memory_files.h"
#include "storage/files/safetensors.h"
#include "tests/storage/data_files.h"
#include "tests/storage/temporary_directory.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

std::string error_of(Files& files, const std::string& spec, const DataNeeds& needs) {
  const auto opened = open_dataset(spec, needs, files);
  return opened ? "none" : opened.error().text;
}

using Tokens = std::vector<std::int32_t>;

void put_shard(Files& files, const std::string& path, const Tokens& tokens) {
  REQUIRE(write_token_shard(files, path, TokenShard::Width::bits16, tokens));
}

}  // namespace

TEST_CASE("a text is split into samples of bytes that share no target", "[storage]") {
  MemoryFiles files;
  put(files, "a.txt", "abcdefgh");
  const auto data = open_dataset("a.txt", {.context = 3}, files);
  REQUIRE(data);
  CHECK((*data)->count() == 2);
  CHECK((*data)->classes() == 256);
  CHECK((*data)->description() == "8 bytes of text");
  CHECK(sample<std::int32_t>(**data, 0) == Sample<std::int32_t>{{97, 98, 99}, {98, 99, 100}});
  CHECK(sample<std::int32_t>(**data, 1) == Sample<std::int32_t>{{100, 101, 102}, {101, 102, 103}});
}

TEST_CASE("a text shorter than a sample is an error", "[storage]") {
  MemoryFiles files;
  put(files, "a.txt", "abc");
  put(files, "empty.txt", "");
  CHECK(error_of(files, "a.txt", {.context = 3}) ==
        "a.txt: has 3 tokens; one sample of model.context = 3 needs 4");
  CHECK(error_of(files, "empty.txt", {.context = 1}) ==
        "empty.txt: has 0 tokens; one sample of model.context = 1 needs 2");
  CHECK(error_of(files, "a.txt", {.context = 2}) == "none");
}

TEST_CASE("samples follow the order of the shards and none spans two shards", "[storage]") {
  MemoryFiles files;
  put_shard(files, "train_1.bin", {5, 6, 7, 8});
  put_shard(files, "train_0.bin", {1, 2, 3, 4, 9});
  put_shard(files, "train_2.bin", {});
  put(files, "train.txt", "not this one");
  const auto data = open_dataset("train_*.bin", {.context = 2}, files);
  REQUIRE(data);
  CHECK((*data)->count() == 3);
  CHECK((*data)->classes() == 10);
  CHECK((*data)->description() == "9 tokens in 3 files");
  CHECK(sample<std::int32_t>(**data, 0) == Sample<std::int32_t>{{1, 2}, {2, 3}});
  CHECK(sample<std::int32_t>(**data, 1) == Sample<std::int32_t>{{3, 4}, {4, 9}});
  CHECK(sample<std::int32_t>(**data, 2) == Sample<std::int32_t>{{5, 6}, {6, 7}});
  CHECK(error_of(files, "valid_*.bin", {.context = 2}) == "valid_*.bin: there is no such file");
}

TEST_CASE("a token outside the model's vocabulary is an error on opening", "[storage]") {
  MemoryFiles files;
  Tokens tokens(10'000, 3);
  tokens[7'777] = 64;
  put_shard(files, "a.bin", tokens);
  put(files, "a.txt", "ab\xff");
  put(files, "a.jsonl", "{\"tokens\": [1, 2]}\n\n{\"tokens\": [3, 64]}\n");
  CHECK(error_of(files, "a.bin", {.context = 2, .classes = 64}) ==
        "a.bin: token 7777 is 64, but the model's vocabulary has 64; set model.vocab to more than "
        "the largest token, or to \"auto\"");
  CHECK(error_of(files, "a.bin", {.context = 2, .classes = 65}) == "none");
  CHECK(error_of(files, "a.txt", {.context = 2, .classes = 128}) ==
        "a.txt: token 2 is 255, but the model's vocabulary has 128; set model.vocab to more than "
        "the largest token, or to \"auto\"");
  CHECK(error_of(files, "a.jsonl", {.context = 2, .classes = 64}) ==
        "a.jsonl:3: the document has the token 64, but the model's vocabulary has 64; set "
        "model.vocab to more than the largest token, or to \"auto\"");
  CHECK(error_of(files, "made:markov?states=65", {.context = 2, .classes = 64}) ==
        "made:markov has states = 65, but the model's vocabulary has 64; set model.vocab to at "
        "least that, or to \"auto\"");
}

TEST_CASE("lines of JSON hold documents of text or of tokens", "[storage]") {
  MemoryFiles files;
  put(files, "text.jsonl", "{\"text\":\"ab\"}\n\n{\"id\":7,\"text\":\"c\"}\r\n");
  put(files, "tokens.jsonl", "{\"tokens\":[1,2]}\n{\"tokens\":[30]}");
  const auto text = open_dataset("text.jsonl", {.context = 4}, files);
  REQUIRE(text);
  CHECK(sample<std::int32_t>(**text, 0) ==
        Sample<std::int32_t>{{'a', 'b', '\n', 'c'}, {'b', '\n', 'c', '\n'}});
  const auto tokens = open_dataset("tokens.jsonl", {.context = 2}, files);
  REQUIRE(tokens);
  CHECK((*tokens)->classes() == 31);
  CHECK(sample<std::int32_t>(**tokens, 0) == Sample<std::int32_t>{{1, 2}, {2, 30}});
}

TEST_CASE("an error names the malformed line of JSON", "[storage]") {
  MemoryFiles files;
  const auto error = [&](const std::string& text) {
    if (*files.exists("a.jsonl")) REQUIRE(files.remove("a.jsonl"));
    put(files, "a.jsonl", text);
    return error_of(files, "a.jsonl", {.context = 1});
  };
  CHECK(error("{\"tokens\":[1,2]}\n{\"tokens\":[1,-2]}") ==
        "a.jsonl:2:14: is no token; an integer of at least 0 and at most 2147483647 was wanted");
  CHECK(error("[]") ==
        "a.jsonl:1:1: is no document; a map with \"text\", or with a list \"tokens\", was wanted");
  CHECK(error("{\"text\":3}") ==
        "a.jsonl:1:1: is no document; a map with \"text\", or with a list \"tokens\", was wanted");
  CHECK(error("\n{\"text\":").substr(0, 10) == "a.jsonl:2:");
}

TEST_CASE("an error names a large file that changes while in use", "[storage]") {
  const auto files = disk_files();
  const auto spoil = GENERATE(as<std::string>(), "shorter", "other bytes");
  const auto kind = GENERATE(as<std::string>(), "text", "shard", "images", "tensors");
  CAPTURE(spoil, kind);
  const TemporaryDirectory directory;
  const std::string path = directory / (kind == "text"     ? "a.txt"
                                        : kind == "shard"  ? "a.bin"
                                        : kind == "images" ? "a-images-idx3-ubyte"
                                                           : "a.safetensors");
  // Small files are copied into memory, so each of these must be large.
  constexpr std::int64_t count = 40'000;
  if (kind == "text") put(*files, path, std::string(4 * count, 'a'));
  if (kind == "shard")
    REQUIRE(write_token_shard(*files, path, TokenShard::Width::bits16,
                              std::vector<std::int32_t>(2 * count, 7)));
  if (kind == "images") {
    REQUIRE(write_idx(*files, path, {count, 2, 2}, std::vector<std::uint8_t>(4 * count, 9)));
    REQUIRE(write_idx(*files, directory / "a-labels-idx1-ubyte", {count},
                      std::vector<std::uint8_t>(count, 1)));
  }
  if (kind == "tensors") {
    const std::vector<float> input(2 * count, 1.0f);
    const std::vector<std::int32_t> target(count, 1);
    const TensorView views[] = {
        {"input", StoredType::f32, {count, 2}, std::as_bytes(std::span(input))},
        {"target", StoredType::i32, {count}, std::as_bytes(std::span(target))}};
    REQUIRE(write_safetensors(*files, path, views, {}));
  }
  const bool is_text = kind == "text" || kind == "shard";
  const auto data = open_dataset(path, {.context = is_text ? 8 : 0, .classes = 256}, *files);
  REQUIRE(data);
  std::vector<std::byte> input((*data)->shape().input_bytes());
  std::vector<std::byte> target((*data)->shape().target_bytes());
  REQUIRE((*data)->read({.sample = (*data)->count() - 1}, {{input}, target}));

  if (spoil == "shorter") {
    std::filesystem::resize_file(path, 5000);
  } else {
    std::fstream(path, std::ios::in | std::ios::out).write("spoiled", 7);
    // Writes within one tick of the system's clock would have equal times.
    const auto then = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path, then + std::chrono::seconds(1));
  }
  const auto read = (*data)->read({.sample = (*data)->count() - 1}, {{input}, target});
  REQUIRE_FALSE(read);
  CHECK(read.error().text.starts_with(path + ": changed while in use: "));
}

TEST_CASE("a text with a tokenizer is read as tokens", "[storage]") {
  MemoryFiles files;
  const auto tokenizer = train_tokenizer("aa aa aa", 258);
  REQUIRE(tokenizer);
  put(files, "tokenizer.json", tokenizer->json());
  put(files, "a.txt", "aaaab");
  put(files, "a.jsonl", "{\"text\":\"aa\"}\n{\"text\":\"b\"}");
  const auto text = open_dataset("a.txt?tokenizer=tokenizer.json", {.context = 2}, files);
  REQUIRE(text);
  CHECK((*text)->classes() == 258);
  const auto a = tokenizer->encode("aa")[0];
  const auto b = tokenizer->encode("b")[0];
  CHECK(sample<std::int32_t>(**text, 0) == Sample<std::int32_t>{{a, a}, {a, b}});
  const auto lines = open_dataset("a.jsonl?tokenizer=tokenizer.json", {.context = 3}, files);
  REQUIRE(lines);
  CHECK(sample<std::int32_t>(**lines, 0) == Sample<std::int32_t>{{a, 257, b}, {257, b, 257}});
}

TEST_CASE("the tensors input and target hold samples by row", "[storage]") {
  const auto files = disk_files();
  const auto data = open_dataset(TROUPE_TEST_DATA "/data/points.safetensors", {}, *files);
  REQUIRE(data);
  CHECK((*data)->count() == 80);
  CHECK((*data)->shape().input == Shape{16});
  CHECK((*data)->shape().input_type == DType::f32);
  CHECK((*data)->shape().target == Shape{});
  const auto file = Safetensors::open(*files, TROUPE_TEST_DATA "/data/points.safetensors");
  MemoryPool pool;
  const auto input = file->load("input", pool);
  const auto target = file->load("target", pool);
  const auto read = sample<float>(**data, 79);
  CHECK(std::equal(read.input.begin(), read.input.end(), input->f32() + 79 * 16));
  CHECK(read.target[0] == target->data<std::int32_t>()[79]);
}

TEST_CASE("tensors that do not form samples are refused", "[storage]") {
  MemoryFiles files;
  const std::array<std::int64_t, 4> numbers = {1, 2, 3, -1};
  const auto bytes = std::as_bytes(std::span(numbers));
  const auto error = [&](const TensorView& input, const TensorView& target) {
    if (*files.exists("a.safetensors")) REQUIRE(files.remove("a.safetensors"));
    const TensorView tensors[] = {input, target};
    REQUIRE(write_safetensors(files, "a.safetensors", tensors));
    return error_of(files, "a.safetensors", {});
  };
  const TensorView three = {"target", StoredType::i64, Shape{3}, bytes.first(24)};
  CHECK(error({"input", StoredType::i64, Shape{3, 1}, bytes.first(24)}, three) == "none");
  CHECK(error({"inputs", StoredType::i64, Shape{3}, bytes.first(24)}, three) ==
        "a.safetensors: there is no tensor \"input\"; data has an `input` and a `target`");
  CHECK(error({"input", StoredType::f64, Shape{3}, bytes.first(24)}, three) ==
        "a.safetensors: input has elements of type F64; F32 or an integer type was wanted");
  CHECK(error({"input", StoredType::i64, Shape{4}, bytes}, three) ==
        "a.safetensors: input has 4 samples and target 3; as many were wanted");
  CHECK(error({"input", StoredType::i64, Shape{}, bytes.first(8)}, three) ==
        "a.safetensors: input has shape []; at least one sample was wanted, the samples along the "
        "first dimension");
  CHECK(error({"input", StoredType::i64, Shape{3}, bytes.last(24)}, three) ==
        "a.safetensors: input[2] holds -1; the model has room for 0 to 2147483646");
}

TEST_CASE("images and labels are read from IDX files", "[storage]") {
  MemoryFiles files;
  const std::array<std::uint8_t, 8> pixels = {0, 255, 51, 102, 1, 2, 3, 4};
  const std::array<std::uint8_t, 2> labels = {7, 3};
  REQUIRE(write_idx(files, "t-images-idx3-ubyte", Shape{2, 2, 2}, pixels));
  REQUIRE(write_idx(files, "t-labels-idx1-ubyte", Shape{2}, labels));
  const auto data = open_dataset("t-images-idx3-ubyte", {}, files);
  REQUIRE(data);
  CHECK((*data)->classes() == 8);
  CHECK((*data)->shape().input == Shape{1, 2, 2});
  CHECK(sample<float>(**data, 0) == Sample<float>{{0.0f, 1.0f, 0.2f, 0.4f}, {7}});
  CHECK(error_of(files, "t-images-idx3-ubyte", {.context = 0, .classes = 7}) ==
        "t-labels-idx1-ubyte: label 0 is 7, but the model has 7 classes; set model.classes to more "
        "than the largest label");
  CHECK(error_of(files, "t-labels-idx1-ubyte", {}) ==
        "t-labels-idx1-ubyte: the labels are missing; name them: t-labels-idx1-ubyte?labels=PATH");
  CHECK(error_of(files, "t-images-idx3-ubyte?labels=t-images-idx3-ubyte", {}) ==
        "t-images-idx3-ubyte: has shape [2, 2, 2]; one label for each of the 2 images of "
        "t-images-idx3-ubyte was wanted");
}

TEST_CASE("glyph images of all ten digits survive a round trip through IDX", "[storage]") {
  MemoryFiles files;
  const auto made = open_dataset("made:glyphs?samples=50&size=16&seed=4", {}, files);
  REQUIRE(made);
  CHECK((*made)->shape().input == Shape{1, 16, 16});
  const auto written = write_dataset(files, **made, "g-images-idx3-ubyte");
  REQUIRE(written);
  CHECK(*written == std::vector<std::string>{"g-images-idx3-ubyte", "g-labels-idx1-ubyte"});
  const auto read = open_dataset("g-images-idx3-ubyte", {}, files);
  REQUIRE(read);
  std::vector<int> digits(10);
  for (std::int64_t i = 0; i < 50; ++i) {
    const auto image = sample<float>(**made, i);
    CHECK(image == sample<float>(**read, i));
    ++digits[static_cast<std::size_t>(image.target[0])];
    CHECK(*std::max_element(image.input.begin(), image.input.end()) > 0.5f);
  }
  CHECK(std::count(digits.begin(), digits.end(), 0) == 0);
}

TEST_CASE("the points of a Gaussian cloud lie around their center", "[storage]") {
  MemoryFiles files;
  const auto data = open_dataset("made:gaussians?dims=4&classes=3&spread=10", {}, files);
  REQUIRE(data);
  std::vector<std::vector<float>> mean(3, std::vector<float>(4));
  std::vector<float> count(3);
  for (std::int64_t i = 0; i < 3'000; ++i) {
    const auto point = sample<float>(**data, i);
    const auto label = static_cast<std::size_t>(point.target[0]);
    ++count[label];
    for (std::size_t d = 0; d < 4; ++d) mean[label][d] += point.input[d];
  }
  for (std::size_t label = 0; label < 3; ++label)
    for (auto& value : mean[label]) value /= count[label];
  for (std::int64_t i = 0; i < 300; ++i) {
    const auto point = sample<float>(**data, i);
    double squared = 0;
    for (std::size_t d = 0; d < 4; ++d)
      squared += std::pow(point.input[d] - mean[static_cast<std::size_t>(point.target[0])][d], 2);
    CHECK(std::sqrt(squared) < 0.1 * 6);
  }
}

TEST_CASE("samples written as tensors or tokens read back equal", "[storage]") {
  MemoryFiles files;
  const auto made = open_dataset("made:markov?samples=20", {.context = 5}, files);
  REQUIRE(write_dataset(files, **made, "m.safetensors"));
  REQUIRE(write_dataset(files, **made, "m.bin"));
  const auto exact = open_dataset("m.safetensors", {.context = 5}, files);
  const auto stream = open_dataset("m.bin", {.context = 5}, files);
  REQUIRE(exact);
  REQUIRE(stream);
  CHECK((*stream)->count() == 20);
  for (std::int64_t i = 0; i < 20; ++i) {
    CHECK(sample<std::int32_t>(**made, i) == sample<std::int32_t>(**exact, i));
    CHECK(sample<std::int32_t>(**made, i).input == sample<std::int32_t>(**stream, i).input);
  }
  CHECK(write_dataset(files, **made, "m.txt").error().text ==
        "m.txt: the ending does not say what to write; .bin (tokens), -ubyte or .idx (images) or "
        ".safetensors was wanted");
  CHECK(write_dataset(files, **made, "x-images.idx").error().text ==
        "x-images.idx: IDX holds images of up to 256 classes, which these samples are not");
}

TEST_CASE("an error explains a mistake in a data specification", "[storage]") {
  MemoryFiles files;
  const DataNeeds tokens{.context = 8};
  CHECK(error_of(files, "", tokens) == "\"\" names no data");
  CHECK(error_of(files, "made:markow", tokens) ==
        "\"made:markow\": there is no made data of that name; did you mean \"made:markov\"? "
        "(made:markov, made:glyphs, made:gaussians)");
  CHECK(error_of(files, "made:markov?state=64", tokens) ==
        "\"made:markov?state=64\": unknown option \"state\"; did you mean \"states\"? (options "
        "here: states, successors, samples, seed, stream)");
  CHECK(error_of(files, "made:markov?states=one", tokens) ==
        "\"made:markov?states=one\": states = \"one\"; an integer from 2 to 200000 was wanted");
  CHECK(error_of(files, "made:markov?states=1", tokens) ==
        "\"made:markov?states=1\": states = \"1\"; an integer from 2 to 200000 was wanted");
  CHECK(error_of(files, "made:markov?states", tokens) ==
        "\"made:markov?states\": the option \"states\" is not of the form key=value");
  CHECK(error_of(files, "made:markov?seed=1&seed=2", tokens) ==
        "\"made:markov?seed=1&seed=2\": the option \"seed\" is given twice");
  CHECK(error_of(files, "made:markov?states=3&successors=4", tokens) ==
        "\"made:markov?states=3&successors=4\": successors = \"4\"; an integer from 1 to 3 was "
        "wanted");
  CHECK(
      error_of(files, "made:markov", {}) ==
      "\"made:markov\" is made of tokens, but the model has no context: it takes images or points");
  CHECK(error_of(files, "made:glyphs", tokens) ==
        "\"made:glyphs\" is made of images or points, but the model takes tokens");
  CHECK(error_of(files, "made:gaussians?classes=5", {.context = 0, .classes = 4}) ==
        "\"made:gaussians?classes=5\" has 5 classes, but the model has 4; set model.classes to at "
        "least that");
  CHECK(error_of(files, "a.parquet", tokens) ==
        "a.parquet: files ending in \".parquet\" are not read; text, .jsonl, .bin token shards, "
        "IDX and .safetensors are");
  CHECK(error_of(files, "none.txt", tokens) == "none.txt: cannot open: No such file or directory");
  CHECK(error_of(files, "none.bin?width=3", tokens) ==
        "\"none.bin?width=3\": unknown option \"width\" (options here: documents, end, "
        "pad, mask, mask_id, special_first, special_last, corrupt, mean, start, sentinel, seed)");
}

TEST_CASE("prepared shards hold all tokens of the text", "[storage]") {
  MemoryFiles files;
  put(files, "in.jsonl", "{\"text\":\"hello\"}\n{\"text\":\"you\"}\n");
  const auto prepared =
      prepare_tokens(files, {.input = "in.jsonl", .prefix = "out", .shard_tokens = 4}, nullptr);
  REQUIRE(prepared);
  CHECK(prepared->train.documents == 2);
  CHECK(prepared->train.tokens == 10);
  CHECK(prepared->train.files ==
        std::vector<std::string>{"out_000000.bin", "out_000001.bin", "out_000002.bin"});
  std::string text;
  for (const auto& path : prepared->train.files) {
    const auto shard = TokenShard::open(files, path);
    for (std::int64_t i = 0; i < shard->count(); ++i) text += static_cast<char>((*shard)[i]);
  }
  CHECK(text == "hello\nyou\n");
}

TEST_CASE("a text is cut at a line, or else at a character", "[storage]") {
  CHECK(split_point("abc", 0) == 3);
  CHECK(split_point("0123456789", 0.2) == 8);
  const std::string lines = "0123456789\n0123456789\n0123456789\n012345678\n";
  CHECK(split_point(lines, 0.25) == 33);
  CHECK(split_point("aaaaaaaa\xc3\xa4"
                    "bbbbbbbbb",
                    0.5) == 10);  // Not within the two bytes.
  CHECK(split_point("ab", 0.01) == 1);
}

TEST_CASE("the last part of the documents is kept apart for validation", "[storage]") {
  MemoryFiles files;
  put(files, "in.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":\"six\"}\n");
  const auto prepared =
      prepare_tokens(files, {.input = "in.jsonl", .prefix = "out", .validate = 0.33}, nullptr);
  REQUIRE(prepared);
  CHECK(prepared->train.documents == 2);
  CHECK(prepared->validate.documents == 1);
  CHECK(prepared->validate.files == std::vector<std::string>{"out-valid_000000.bin"});
}

TEST_CASE("inspecting reports the contents of a file", "[storage]") {
  MemoryFiles files;
  put_shard(files, "a.bin", {1, 500, 2});
  const auto shard = inspect_data(files, "a.bin");
  REQUIRE(shard);
  CHECK(*shard == Value(Value::Map{{"kind", "token shard", {}},
                                   {"bits", 16, {}},
                                   {"tokens", 3, {}},
                                   {"largest_token", 500, {}}}));
  const auto made = inspect_data(files, "made:gaussians?dims=2");
  REQUIRE(made);
  CHECK(*made->find("description")->text() == "Gaussian clouds, 4 classes in 2 dimensions");
  const auto markov = inspect_data(files, "made:markov");
  REQUIRE(markov);
  CHECK(markov->find("entropy_rate")->number() > 0.5);
  CHECK_FALSE(inspect_data(files, "made:markov?sates=3"));
}

TEST_CASE("targets that are numbers are read, and NaN is no target", "[storage]") {
  MemoryFiles files;
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> inputs = {1, 2, 3, 4};
  const auto write = [&](const std::vector<float>& targets) {
    if (*files.exists("a.safetensors")) REQUIRE(files.remove("a.safetensors"));
    const TensorView views[] = {
        {"input", StoredType::f32, {2, 2}, std::as_bytes(std::span(inputs))},
        {"target", StoredType::f32, {2, 3}, std::as_bytes(std::span(targets))}};
    REQUIRE(write_safetensors(files, "a.safetensors", views, {}));
  };
  const DataNeeds any{.target_type = DType::f32};
  const DataNeeds shares{.target_type = DType::f32, .target_bounds = {.least = 0, .most = 1}};
  write({0, 1, none, 0.5f, none, none});
  const auto data = open_dataset("a.safetensors", shares, files);
  REQUIRE(data);
  CHECK((*data)->shape().target == Shape{3});
  CHECK((*data)->shape().target_type == DType::f32);
  CHECK((*data)->classes() == 1);
  CHECK((*data)->description() == "2 samples, input [2], target [3] of numbers");
  MemoryPool memory;
  const SampleOrder order(SampleOrder::Kind::sequential, 0, 2);
  const auto batch = MicroBatches(**data, order, 2, 2).read(memory, 0, 0);
  REQUIRE(batch);
  CHECK(batch->target.dtype() == DType::f32);
  CHECK(batch->target.f32()[3] == 0.5f);
  CHECK(batch->counted == 3);

  write({0, 1, none, 1.5f, none, none});
  CHECK(error_of(files, "a.safetensors", any) == "none");
  CHECK(error_of(files, "a.safetensors", shares) ==
        "a.safetensors: found 1.5 in target[1], wanted 0 to 1 or NaN");
  write({0, -infinity, none, 1, none, none});
  CHECK(error_of(files, "a.safetensors", any) ==
        "a.safetensors: found -inf in target[0], wanted finite numbers or NaN");
}

TEST_CASE("targets are of the type that the model's loss takes", "[storage]") {
  MemoryFiles files;
  const DataNeeds numbers{.target_type = DType::f32}, classes{.target_type = DType::i32};
  CHECK(error_of(files, "made:glyphs", classes) == "none");
  CHECK(error_of(files, "made:glyphs?target=mask", numbers) == "none");
  CHECK(error_of(files, "made:glyphs", numbers) ==
        "\"made:glyphs\" has targets in i32, and the model's loss takes f32: numbers; give data "
        "with targets in fp32, or the model a loss of kind = \"cross_entropy\"");
  CHECK(error_of(files, "made:glyphs?target=clean", classes) ==
        "\"made:glyphs?target=clean\" has targets in f32, and the model's loss takes i32: classes "
        "or tokens; give the model a loss of kind = \"binary\" or \"squared\", or integers as "
        "targets");
  CHECK(error_of(files, "made:glyphs?target=ink", {}) ==
        "made:glyphs has target = ink; digit, mask (the ink of each pixel) or clean (the image "
        "without noise) was wanted");
}

TEST_CASE("glyphs have the same images whatever their target is", "[storage]") {
  MemoryFiles files;
  const std::string spec = "made:glyphs?samples=20&size=12&channels=2&seed=3";
  const auto digits = open_dataset(spec, {}, files);
  const auto masks = open_dataset(spec + "&target=mask", {}, files);
  const auto clean = open_dataset(spec + "&target=clean", {}, files);
  const auto plain = open_dataset(spec + "&noise=0&target=clean", {}, files);
  REQUIRE(digits);
  REQUIRE(masks);
  REQUIRE(clean);
  REQUIRE(plain);
  CHECK((*masks)->shape().target == Shape{1, 12, 12});
  CHECK((*clean)->shape().target == Shape{2, 12, 12});
  const auto read = [](const Dataset& data, std::int64_t index) {
    std::vector<float> input(data.shape().input_bytes() / 4),
        target(data.shape().target_bytes() / 4);
    REQUIRE(data.read({.sample = index}, {{std::as_writable_bytes(std::span(input))},
                                          std::as_writable_bytes(std::span(target))}));
    return std::pair(input, target);
  };
  for (const std::int64_t index : {0, 7, 19}) {
    const auto image = read(**digits, index).first;
    const auto [of_mask, mask] = read(**masks, index);
    const auto [of_clean, wanted] = read(**clean, index);
    CHECK(of_mask == image);
    CHECK(of_clean == image);
    CHECK(wanted != image);
    const auto [without_noise, same] = read(**plain, index);
    CHECK(without_noise == same);
    std::size_t inked = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      CHECK((mask[i] == 0 || mask[i] == 1));
      // Ink has a brightness of 140 to 255, and a marked pixel at least half of it.
      if (mask[i] == 1) CHECK(wanted[i] >= 70.0f / 255.0f);
      if (mask[i] == 0) CHECK(wanted[i] < 128.0f / 255.0f);
      inked += mask[i] == 1;
    }
    CHECK(inked > 5);
    CHECK(inked < mask.size() / 2);
  }
}
