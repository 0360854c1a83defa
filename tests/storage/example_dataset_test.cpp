// Prompts with answers, of which the answers alone count.

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

std::string error_of(Files& files, const std::string& text, const DataNeeds& needs) {
  if (*files.exists("a.jsonl")) REQUIRE(files.remove("a.jsonl"));
  put(files, "a.jsonl", text);
  const auto opened = open_dataset("a.jsonl", needs, files);
  return opened ? "none" : opened.error().text;
}

}  // namespace

TEST_CASE("a sample is a prompt with its answer, and the answer alone counts", "[storage]") {
  MemoryFiles files;
  put(files, "a.jsonl",
      "{\"prompt\": \"ab\", \"answer\": "
      "\"cd\"}\n\n{\"prompt\":[7,8,9],\"answer\":[1,2,3,4],\"id\":1}\n"
      "{\"prompt\": [], \"answer\": [5, 6]}\n");
  const auto data = open_dataset("a.jsonl", {.context = 5, .ignore = no}, files);
  REQUIRE(data);
  CHECK((*data)->count() == 3);
  CHECK((*data)->classes() == 'd' + 1);
  const auto first = sample<std::int32_t>(**data, 0);
  CHECK(first.input == Tokens{'a', 'b', 'c', 'd', '\n'});
  CHECK(first.target == Tokens{no, 'c', 'd', '\n', no});
  const auto second = sample<std::int32_t>(**data, 1);
  CHECK(second.input == Tokens{7, 8, 9, 1, 2});
  CHECK(second.target == Tokens{no, no, 1, 2, 3});
  const auto third = sample<std::int32_t>(**data, 2);
  CHECK(third.input == Tokens{5, 6, 0, 0, 0});
  CHECK(third.target == Tokens{6, no, no, no, no});
  CHECK((*data)->description() == "3 prompts with answers, 1 of them cut to 5 tokens");
}

TEST_CASE("prompts that leave no room for an answer are left out", "[storage]") {
  MemoryFiles files;
  const std::string text =
      "{\"prompt\":[1,2,3],\"answer\":[4]}\n{\"prompt\":[1,2,3,4],\"answer\":[5]}\n";
  put(files, "b.jsonl", text);
  const auto data = open_dataset("b.jsonl", {.context = 3, .ignore = no}, files);
  REQUIRE(data);
  CHECK((*data)->count() == 1);
  CHECK(sample<std::int32_t>(**data, 0).target == Tokens{no, no, 4});
  CHECK((*data)->description() ==
        "1 prompts with answers; 1 more left out, because 3 tokens have no room for the prompt and "
        "an answer");
  CHECK(error_of(files, text, {.context = 2, .ignore = no}) ==
        "a.jsonl: has no prompt that leaves room for an answer in model.context = 2 tokens");
  const auto inspected = inspect_data(files, "b.jsonl");
  REQUIRE(inspected);
  CHECK(*inspected->find("description")->text() == "2 prompts with answers");
}

TEST_CASE("errors of prompts and answers name the line and what is wrong", "[storage]") {
  MemoryFiles files;
  const DataNeeds needs{.context = 4, .classes = 9, .ignore = no};
  const std::string good = "{\"prompt\":[1],\"answer\":[2]}\n";
  CHECK(error_of(files, good, {.context = 4}) ==
        "a.jsonl: has prompts with answers, of which the answers alone count; set "
        "model.loss.ignore = -100, the target that stands for the others");
  CHECK(error_of(files, good + "{\"prompt\":[1]}", needs) ==
        "a.jsonl:2:1: is no example; a map with \"prompt\" and \"answer\", each a text or a list "
        "of tokens, was wanted");
  CHECK(error_of(files, good + "{\"prompt\":[-1],\"answer\":[2]}", needs) ==
        "a.jsonl:2:12: is no token; an integer of at least 0 and at most 2147483647 was wanted");
  CHECK(error_of(files, good + "{\"prompt\":[1],\"answer\":[9]}", needs) ==
        "a.jsonl:2: the example has the token 9, but the model's vocabulary has 9; set model.vocab "
        "to more than the largest token, or to \"auto\"");
  CHECK(error_of(files, "{\"text\":\"a\"}\n" + good, {.context = 1, .ignore = no})
            .starts_with("a.jsonl:2:1: is a prompt with an answer, and a document was wanted"));
}

TEST_CASE("a tensor of targets may hold the one that does not count", "[storage]") {
  MemoryFiles files;
  put(files, "a.jsonl", "{\"prompt\":[1,2],\"answer\":[3]}\n{\"prompt\":[1],\"answer\":[2,3]}\n");
  const auto made = open_dataset("a.jsonl", {.context = 3, .ignore = no}, files);
  REQUIRE(made);
  REQUIRE(write_dataset(files, **made, "a.safetensors"));
  const auto again =
      open_dataset("a.safetensors", {.context = 3, .classes = 4, .ignore = no}, files);
  REQUIRE(again);
  for (std::int64_t i = 0; i < 2; ++i)
    CHECK(sample<std::int32_t>(**again, i).target == sample<std::int32_t>(**made, i).target);
  const auto without = open_dataset("a.safetensors", {.context = 3, .classes = 4}, files);
  REQUIRE_FALSE(without.ok());
  CHECK(without.error().text ==
        "a.safetensors: target[0] holds -100; the model has room for 0 to 3, and for "
        "model.loss.ignore");

  MemoryPool memory;
  const SampleOrder order(SampleOrder::Kind::sequential, 0, 2);
  const auto batch = MicroBatches(**again, order, 2, 2, no).read(memory, 0, 0);
  REQUIRE(batch);
  CHECK(batch->counted == 3);
  CHECK(MicroBatches(**again, order, 2, 2).read(memory, 0, 0)->counted == 6);
}
