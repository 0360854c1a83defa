// Data of several inputs: the fields that data offers, and those that a model takes.

#include <vector>

#include "catch.h"
#include "data_files.h"
#include "storage/data/dataset.h"
#include "storage/data/micro_batches.h"
#include "storage/files/memory_files.h"
#include "storage/files/safetensors.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

/// Three samples with tokens, marks, spans and sizes.
struct Made {
  std::vector<std::int32_t> tokens = {1, 2, 3, 4, 5, 6};
  std::vector<std::int32_t> marks = {0, 1, 1, 0, 1, 1};
  std::vector<std::int32_t> span = {0, 2, 0, 2, 0, 1, 1, 2, 0, 0, 2, 2};
  std::vector<float> sizes = {0.5f, 1.5f, 2.5f};
  std::vector<std::int32_t> target = {6, 5, 4, 3, 2, 1};

  void write(Files& files) const {
    const TensorView views[] = {
        {"marks", StoredType::i32, {3, 2}, std::as_bytes(std::span(marks))},
        {"sizes", StoredType::f32, {3, 1}, std::as_bytes(std::span(sizes))},
        {"span", StoredType::i32, {3, 2, 2}, std::as_bytes(std::span(span))},
        {"target", StoredType::i32, {3, 2}, std::as_bytes(std::span(target))},
        {"tokens", StoredType::i32, {3, 2}, std::as_bytes(std::span(tokens))}};
    REQUIRE(write_safetensors(files, "a.safetensors", views));
  }
};

/// Returns the needs of a model that takes all fields, in another order than the file.
DataNeeds all_fields() {
  return {.context = 2,
          .inputs = {{{"tokens", {2}, DType::i32}, {.below = 7}},
                     {{"span", {2, 2}, DType::i32}, {.below = 3, .are_spans = true}},
                     {{"sizes", {1}, DType::f32}, {}},
                     {{"marks", {2}, DType::i32}, {.below = 2}}},
          .target = {2}};
}

std::string fault(Files& files, const DataNeeds& needs) {
  const auto opened = open_dataset("a.safetensors", needs, files);
  return opened ? "" : opened.error().text;
}

template <class T>
std::vector<T> numbers(const Tensor& tensor) {
  const auto all = tensor.numbers<T>();
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("a micro-batch has the inputs in the model's order", "[storage]") {
  MemoryFiles files;
  const Made made;
  made.write(files);
  const auto data = open_dataset("a.safetensors", all_fields(), files);
  REQUIRE(data);
  CHECK((*data)->fields() == std::vector<std::string>{"marks", "sizes", "span", "tokens"});
  CHECK((*data)->classes() == 7);
  const SampleOrder order(SampleOrder::Kind::sequential, 0, 3);
  const MicroBatches batches(**data, order, 3, 3);
  MemoryPool memory;
  const auto batch = batches.read(memory, 0, 0);
  REQUIRE(batch);
  CHECK(numbers<std::int32_t>(batch->input) == made.tokens);
  CHECK(numbers<std::int32_t>(batch->target) == made.target);
  REQUIRE(batch->more.size() == 3);
  CHECK(batch->more[0].shape() == Shape{3, 2, 2});
  CHECK(numbers<std::int32_t>(batch->more[0]) == made.span);
  CHECK(numbers<float>(batch->more[1]) == made.sizes);
  CHECK(numbers<std::int32_t>(batch->more[2]) == made.marks);
}

TEST_CASE("the digest of a micro-batch covers every input", "[storage]") {
  const SampleOrder order(SampleOrder::Kind::sequential, 0, 3);
  const auto digest = [&](const Made& made, const DataNeeds& needs) {
    MemoryFiles files;
    made.write(files);
    const auto data = open_dataset("a.safetensors", needs, files);
    REQUIRE(data);
    MemoryPool memory;
    const auto batch = MicroBatches(**data, order, 3, 3).read(memory, 0, 0);
    REQUIRE(batch);
    return to_string(batch->content);
  };
  const auto whole = digest({}, all_fields());
  CHECK(digest({}, all_fields()) == whole);
  Made other;
  other.marks[5] = 0;
  CHECK(digest(other, all_fields()) != whole);
  other = {};
  other.sizes[0] = 0;
  CHECK(digest(other, all_fields()) != whole);
  // The digest leaves out a field that the model does not take.
  auto fewer = all_fields();
  fewer.inputs.pop_back();
  other = {};
  other.marks[5] = 0;
  CHECK(digest(other, fewer) == digest({}, fewer));
  // One input alone has the digest that it always had: of inputs and targets.
  fewer.inputs.resize(1);
  Digester digester;
  digester.add(std::as_bytes(std::span(other.tokens)));
  digester.add(std::as_bytes(std::span(other.target)));
  CHECK(digest({}, fewer) == to_string(digester.finish()));
}

TEST_CASE("data without what a model takes is refused with the fields of both", "[storage]") {
  MemoryFiles files;
  Made().write(files);
  auto needs = all_fields();
  needs.inputs.push_back({{"kinds", {2}, DType::i32}, {.below = 2}});
  CHECK(fault(files, needs) ==
        "\"a.safetensors\" has no field 'kinds': it has marks, sizes, span, tokens, and the model "
        "takes tokens, span, sizes, marks, kinds");
  needs = all_fields();
  needs.inputs[3].field.shape = {4};
  CHECK(fault(files, needs) ==
        "\"a.safetensors\" has the field 'marks' as i32 [2], and the model takes i32 [4]");
  needs = all_fields();
  needs.inputs[2].field.type = DType::i32;
  CHECK(fault(files, needs) ==
        "\"a.safetensors\" has the field 'sizes' as f32 [1], and the model takes i32 [1]");
  needs = all_fields();
  needs.target = {3};
  CHECK(fault(files, needs) == "\"a.safetensors\" has targets [2], and the model takes [3]");
  const auto text = open_dataset("made:markov", all_fields(), files);
  REQUIRE_FALSE(text);
  CHECK(text.error().text ==
        "\"made:markov\" has no field 'span': it has tokens, and the model takes tokens, span, "
        "sizes, marks");
}

TEST_CASE("inputs out of their bounds are refused before the first step", "[storage]") {
  const auto fault_of = [](auto spoil) {
    MemoryFiles files;
    Made made;
    spoil(made);
    made.write(files);
    return fault(files, all_fields());
  };
  CHECK(fault_of([](Made&) {}).empty());
  CHECK(fault_of([](Made& made) { made.marks[3] = 2; }) ==
        "a.safetensors: marks[1] holds 2; the model has room for 0 to 1");
  CHECK(fault_of([](Made& made) { made.tokens[0] = 7; }) ==
        "a.safetensors: tokens[0] holds 7; the model has room for 0 to 6");
  CHECK(fault_of([](Made& made) { made.span[1] = 3; }) ==
        "a.safetensors: span[0] holds 3; the model has room for 0 to 2");
  CHECK(fault_of([](Made& made) { made.span[5] = -1; }) ==
        "a.safetensors: span[1] holds -1; the model has room for 0 to 2");
  CHECK(fault_of([](Made& made) { made.span[10] = 2, made.span[11] = 1; }) ==
        "a.safetensors: span[2] holds a span from 2 to 1; a span does not end before its first");
}
