// Documents that do not look into each other, and padding, which nobody looks at.

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "storage/data/micro_batches.h"
#include "storage/data/token_shard.h"
#include "storage/files/memory_files.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

/// Returns what a model needs of its data.
storage::DataNeeds needs_of(const Model& model) {
  const auto& form = model.sample;
  storage::DataNeeds needs{
      .context = form.input[0], .vocabulary = model.classes, .ignore = model.ignore};
  if (form.more.empty()) return needs;
  needs.inputs.push_back({{form.input_name, form.input, form.input_type}, form.bounds});
  for (std::size_t i = 0; i < form.more.size(); ++i)
    needs.inputs.push_back(
        {{form.more[i].name, form.more[i].shape, form.more[i].type}, model.kept[i].bounds});
  needs.target = form.target;
  return needs;
}

/// The losses of all targets that count, in the order of the data, and the gradients of their mean.
struct Learned {
  std::vector<float> losses, gradients;
};

/// Returns what the data teaches a model with the weights of a seed.
Learned learned_from(const Model& model, storage::Files& files, const std::string& data) {
  const auto opened = storage::open_dataset(data, needs_of(model), files);
  if (!opened) FAIL(opened.error().text);
  const auto count = (*opened)->count();
  const storage::SampleOrder order(storage::SampleOrder::Kind::sequential, 0, count);
  MemoryPool memory;
  Stream stream(memory);
  auto batch = storage::MicroBatches(**opened, order, count, count).read(memory, 0, 0);
  REQUIRE(batch);
  Stage stage(model, {0, static_cast<int>(model.units.size())}, {});
  Optimizer optimizer({}, stage.parameters(), stage.buffers(), kernels::Precision::fp32);
  Bundle inputs = batch->input;
  inputs.kept = batch->more;
  const auto weights = optimizer.initial(stream, 1);
  const auto all = batch->target.count();
  const auto counted = all - std::ranges::count(batch->target.numbers<std::int32_t>(),
                                                model.ignore.value_or(INT32_MIN));
  stage.begin_step(Share::whole(1, 1), counted);
  const Tensor losses =
      stage.forward(stream, {.targets = {all, counted}}, *weights, std::move(inputs), batch->target)
          .stream;
  Learned learned;
  for (std::int64_t i = 0; i < losses.count(); ++i)
    if (batch->target.data<std::int32_t>()[i] != model.ignore)
      learned.losses.push_back(losses.f32()[i]);
  stage.backward(stream, 0, *weights, {});
  auto gradients = join(stream, {stage.take_gradients()});
  for (const auto& slot : gradients.slots) {
    if (slot.empty()) continue;
    const auto numbers = slot.numbers<float>();
    learned.gradients.insert(learned.gradients.end(), numbers.begin(), numbers.end());
  }
  return learned;
}

std::vector<float> losses_of(const Model& model, storage::Files& files, const std::string& data) {
  return learned_from(model, files, data).losses;
}

/// Returns the greatest difference relative to the greatest number.
double difference(const std::vector<float>& ours, const std::vector<float>& wanted) {
  REQUIRE(ours.size() == wanted.size());
  double most = 0, greatest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(ours[i]) - wanted[i]));
    greatest = std::max(greatest, std::abs(static_cast<double>(wanted[i])));
  }
  return most / greatest;
}

void put_tokens(storage::Files& files, const std::vector<std::int32_t>& tokens) {
  using storage::TokenShard;
  REQUIRE(storage::write_token_shard(files, "a.bin", TokenShard::Width::bits16, tokens));
}

/// Writes ten documents that end with token 3 and fill samples of 12 tokens in different ways.
void put_documents(storage::Files& files) {
  std::vector<std::int32_t> tokens;
  std::int32_t next = 0;
  for (const auto length : {8, 4, 4, 8, 12, 3, 9, 5, 2, 5})
    for (int i = 0; i < length; ++i)
      tokens.push_back(i + 1 == length ? 3 : 4 + (next = (next * 31 + 17) % 96));
  tokens.push_back(3);  // The token behind the last sample.
  put_tokens(files, tokens);
}

Value table(std::initializer_list<std::pair<const char*, Value>> entries) {
  Value made;
  for (const auto& [key, value] : entries) made.set(key, value);
  return made;
}

const std::string own_causal = R"toml(model = { format = 1, name = "causal", help = "A decoder." }
input.tokens = { type = "i32", shape = [12], below = 100 }
input.span = { type = "i32", shape = [12, 2] }
loss = { kind = "cross_entropy", classes = 100, ignore = -100 }
every.norm = { kind = "rms", eps = 1e-6 }
every.attention = { heads = 2, mask = "causal", rope = 10000, proj = ["q", "k", "v", "o"] }
part = [
  { body = [{ embed = "words", rows = 100, width = 16 }] },
  { name = "b{i}", repeat = { i = 2 }, body = [
      { residual = [{ norm = "norm" }, { attention = "attention", span = "span" }] },
      { residual = [{ norm = "inner" }, { linear = "one", out = 16 }, "relu"] }] },
  { body = [{ norm = "last" }, { linear = "head", out = 100 }] }]
)toml";

}  // namespace

TEST_CASE("padding changes no bit of the losses of an encoder and a decoder", "[models]") {
  storage::MemoryFiles files;
  const std::string lines =
      "{\"source\": [5, 6, 7, 8, 9, 10, 11, 2], \"target\": [7, 8, 9, 2]}\n"
      "{\"source\": [5, 2], \"target\": [12, 11, 10, 9, 8, 2]}\n"
      "{\"source\": [12, 11, 10, 2], \"target\": [2]}\n";
  REQUIRE(write_new_file(files, "a.jsonl", {std::as_bytes(std::span(lines))}));
  const auto of = [&](std::int64_t source, std::int64_t target) {
    const auto model = build("t5", table({{"vocab", 13},
                                          {"source", source},
                                          {"target", target},
                                          {"width", 8},
                                          {"layers", 2},
                                          {"heads", 2},
                                          {"head_width", 6},
                                          {"ffn", 12}}));
    return losses_of(model, files, "a.jsonl?start=1");
  };
  const auto tight = of(8, 6);
  CHECK(tight.size() == 11);
  CHECK(of(8, 9) == tight);
  CHECK(of(21, 6) == tight);
  CHECK(of(40, 33) == tight);
}

TEST_CASE("padding changes no bit of the losses of masked words", "[models]") {
  storage::MemoryFiles files;
  std::vector<std::int32_t> tokens;
  for (std::int32_t document = 0; document < 12; ++document) {
    for (std::int32_t i = 0; i < 2 + document % 6; ++i)
      tokens.push_back(4 + (document * 5 + i) % 9);
    tokens.push_back(3);
  }
  put_tokens(files, tokens);
  const auto of = [&](std::int64_t length) {
    const auto model = build("bert", table({{"vocab", 13},
                                            {"context", 30},
                                            {"length", length},
                                            {"width", 8},
                                            {"layers", 2},
                                            {"heads", 2}}));
    return losses_of(model, files, "a.bin?documents=padded&end=3&mask=0.4&mask_id=2");
  };
  const auto tight = of(8);
  CHECK(tight.size() > 10);
  CHECK(of(13) == tight);
  CHECK(of(30) == tight);
}

TEST_CASE("documents side by side have the losses that they have alone", "[models]") {
  storage::MemoryFiles files;
  put_documents(files);
  const auto model = described(own_causal);
  const auto sorted = [&](const std::string& documents) {
    auto losses = losses_of(model, files, "a.bin?end=3&documents=" + documents);
    std::ranges::sort(losses);
    return losses;
  };
  const auto apart = sorted("apart"), alone = sorted("padded");
  REQUIRE(apart.size() == 60 - 10);
  REQUIRE(alone.size() == apart.size());
  for (std::size_t i = 0; i < apart.size(); ++i) CHECK(apart[i] == Approx(alone[i]).epsilon(1e-5));
  // Without spans a document looks back into the one before it.
  std::string blind = own_causal;
  blind.replace(blind.find(", span = \"span\""), 15, "");
  const auto end = blind.find("input.span");
  blind.erase(end, blind.find('\n', end) + 1 - end);
  auto looking_back = losses_of(described(blind), files, "a.bin?end=3&documents=apart");
  std::ranges::sort(looking_back);
  double difference = 0;
  for (std::size_t i = 0; i < apart.size(); ++i)
    difference = std::max(difference, std::abs(static_cast<double>(looking_back[i] - apart[i])));
  CHECK(difference > 1e-3);
}

TEST_CASE("documents that shipped kinds keep apart teach what they teach alone", "[models]") {
  storage::MemoryFiles files;
  put_documents(files);
  const std::string kind =
      GENERATE("gpt2", "llama", "gpt_neox", "gptj", "phi", "gemma", "mixtral", "qwen3_moe");
  CAPTURE(kind);
  const auto model = [&](bool apart) {
    auto options = table({{"vocab", 100},
                          {"context", 12},
                          {"width", 16},
                          {"layers", 2},
                          {"heads", 2},
                          {"apart", apart},
                          {"loss", table({{"ignore", -100}})}});
    if (kind == "gptj") options.set("rotary", 4);
    if (kind == "gpt_neox") options.set("rotary", 0.5);
    if (kind == "llama") options.set("window", 5);
    if (kind == "gemma") options.set("ffn", 24);
    // A balance loss is of all tokens of a micro-batch, also of padding.
    if (kind == "mixtral" || kind == "qwen3_moe") options.set("balanced", false);
    return build(kind, options);
  };
  const auto sorted = [](std::vector<float> losses) {
    std::ranges::sort(losses);
    return losses;
  };
  const auto own = model(true);
  const auto apart = learned_from(own, files, "a.bin?end=3&documents=apart");
  const auto alone = learned_from(own, files, "a.bin?end=3&documents=padded");
  REQUIRE(apart.losses.size() == 60 - 10);
  CHECK(difference(sorted(apart.losses), sorted(alone.losses)) < 1e-5);
  CHECK(difference(apart.gradients, alone.gradients) < 1e-5);
  // Alone is alone: a model that keeps nothing apart learns the same from documents of their own.
  const auto plain = model(false);
  CHECK(plain.sample.more.empty());
  const auto padded = learned_from(plain, files, "a.bin?end=3&documents=padded");
  CHECK(difference(sorted(padded.losses), sorted(alone.losses)) < 1e-5);
  CHECK(difference(padded.gradients, alone.gradients) < 1e-5);
  const auto joined = learned_from(plain, files, "a.bin?end=3&documents=apart");
  CHECK(difference(sorted(joined.losses), sorted(apart.losses)) > 1e-4);
  CHECK(difference(joined.gradients, apart.gradients) > 1e-3);
}
