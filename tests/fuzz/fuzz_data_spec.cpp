#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "storage/data/dataset.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

constexpr std::int64_t vocabulary = 300, length = 6;
constexpr std::int32_t ignored = -100;

const char* const documents =
    "{\"text\": \"to be or not\"}\n{\"text\": \"\"}\n{\"tokens\": [7, 250, 8]}\n";
const char* const answers = "{\"prompt\": \"to be\", \"answer\": \"or\"}\n";
const char* const pairs = "{\"source\": \"to be or\", \"target\": \"not to be\"}\n";
const char* const sentences = "{\"first\": \"to be\", \"second\": [9, 8, 7]}\n";

Field integers(const char* name, const Shape& shape) { return {name, shape, DType::i32}; }

/// Returns what models need: one input, the fields of a text, and those of sources with targets.
std::vector<DataNeeds> all_needs() {
  const IntegerBounds tokens{.below = vocabulary}, spans{length + 1, true};
  const DataNeeds one{.context = length, .vocabulary = vocabulary, .ignore = ignored};
  DataNeeds text = one, pair = one, any = {.context = length};
  text.inputs = {{integers("tokens", {length}), tokens},
                 {integers("span", {length, 2}), spans},
                 {integers("positions", {length}), {.below = length}},
                 {integers("token_types", {length}), {.below = 2}}};
  pair.inputs = {{integers("source", {length}), tokens},
                 {integers("span", {length, 2}), spans},
                 {integers("decoder_tokens", {length}), tokens},
                 {integers("memory_span", {length, 2}), spans}};
  text.target = pair.target = {length};
  return {one, text, pair, any};
}

void write(Files& files, const std::string& name, const std::string& text) {
  if (!write_new_file(files, name, {std::as_bytes(std::span(text))})) std::abort();
}

/// Reads some samples. What stands in place of integers is in their bounds, and targets are
/// classes, or do not count.
void read_samples(const Dataset& data, const DataNeeds& needs) {
  const auto& shape = data.shape();
  constexpr std::int64_t most_samples = 3;
  for (std::int64_t i = 0; i < std::min(data.count(), most_samples); ++i) {
    std::vector<std::vector<std::byte>> inputs{std::vector<std::byte>(shape.input_bytes())};
    for (const auto& field : shape.more) inputs.emplace_back(field.bytes());
    std::vector<std::byte> target(shape.target_bytes());
    SampleSpans to{{inputs.begin(), inputs.end()}, target};
    if (!data.read({.pass = 1, .sample = i}, to)) continue;
    for (std::size_t k = 0; k < needs.inputs.size(); ++k) {
      std::vector<std::int32_t> numbers(inputs[k].size() / sizeof(std::int32_t));
      std::memcpy(numbers.data(), inputs[k].data(), inputs[k].size());
      const auto& need = needs.inputs[k];
      const bool is_token = need.bounds.below == vocabulary;
      // A vocabulary that is too small is told before training, by the number of classes.
      if (is_token && data.classes() > vocabulary) continue;
      if (!out_of_bounds(numbers, need.bounds, "a field").empty()) std::abort();
    }
    if (shape.target_type != DType::i32) continue;
    std::vector<std::int32_t> numbers(target.size() / sizeof(std::int32_t));
    std::memcpy(numbers.data(), target.data(), target.size());
    for (const auto number : numbers)
      if (number != needs.ignore && (number < 0 || number >= data.classes())) std::abort();
  }
}

}  // namespace

/// Reads any text as a data spec: gives an error, or samples that are within their bounds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t longest = 200;  // Generated data may be large, and takes time.
  const std::string spec(reinterpret_cast<const char*>(data), std::min(size, longest));
  MemoryFiles files;
  write(files, "a.txt", "to be or not to be, that is the question");
  write(files, "documents.jsonl", documents);
  write(files, "answers.jsonl", answers);
  write(files, "pairs.jsonl", pairs);
  write(files, "sentences.jsonl", sentences);
  for (const auto& needs : all_needs()) {
    const auto opened = open_dataset(spec, needs, files);
    if (!opened && opened.error().text.empty()) std::abort();
    if (opened) read_samples(**opened, needs);
  }
  return 0;
}
