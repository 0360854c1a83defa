// Compares families of models with transformers in float64. Each folder of tests/golden/families is
// read as `model.from` reads it.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <variant>

#include "catch.h"
#include "config/load.h"
#include "config/model_kinds.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "golden_trace.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

using namespace troupe;
using namespace troupe::models;

namespace {

const std::string families = TROUPE_TEST_DATA "/../golden/families/";

Value parsed(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  auto value = parse_json(text.str());
  REQUIRE(value.ok());
  return *value;
}

std::map<std::string, Tensor> tensors_in(const std::string& path, MemoryPool& memory) {
  const auto files = storage::disk_files();
  const auto file = storage::Safetensors::open(*files, path);
  REQUIRE(file.ok());
  std::map<std::string, Tensor> all;
  for (const auto& view : file->tensors()) {
    auto tensor = storage::load(view, memory);
    REQUIRE(tensor.ok());
    all.emplace(view.name, std::move(*tensor));
  }
  return all;
}

/// Returns what config.json does not say: the sizes of the samples of data.safetensors.
std::vector<std::string> sizes_of(const std::string& family) {
  if (family.starts_with("t5")) return {"source=24", "target=10"};
  if (family == "bert") return {"length=16"};
  if (family == "bert_pairs") return {"length=16", "pairs=true"};
  return {};
}

/// Returns the options of the model in a folder, with some changed: "window=6".
Value options_of(const std::string& family, const std::vector<std::string>& changes) {
  const std::string text = "[model]\nfrom = \"" + families + family +
                           "\"\n[data]\ntrain = \"made:markov\"\n[batch]\nglobal = 2\n[train]\n"
                           "steps = 1\n";
  std::vector<std::string> settings;
  for (const auto& size : sizes_of(family)) settings.push_back("model." + size);
  for (const auto& change : changes) settings.push_back("model." + change);
  const auto loaded = config::load({.path = "family.toml",
                                    .settings = settings,
                                    .read = [&](const std::string& path) -> Result<std::string> {
                                      if (path == "family.toml") return text;
                                      return config::read_text_file(path);
                                    }});
  INFO((loaded.ok() ? "" : loaded.error().text));
  REQUIRE(loaded.ok());
  return loaded->config.model.table();
}

/// A family's model with the weights of transformers, and what transformers computes.
struct Family {
  MemoryPool memory;
  Model model;
  std::vector<NamedTensor> weights;
  std::map<std::string, Tensor> data;
  Value trace;
  std::string prefix;  // Their names have it, and ours lack it.

  explicit Family(const std::string& name, const std::vector<std::string>& changes = {})
      : data(tensors_in(families + name + "/data.safetensors", memory)),
        trace(parsed(families + name + "/trace.json")) {
    const auto options = options_of(name, changes);
    const auto kind = config::kind_of(options);
    REQUIRE(kind.ok());
    auto built = config::model_from(options);
    INFO((built.ok() ? "" : built.error().text));
    REQUIRE(built.ok());
    model = *std::move(built);
    auto theirs = tensors_in(families + name + "/model.safetensors", memory);
    for (const auto& entry : kind->hugging_face())
      for (const auto& one : entry.prefixes)
        if (theirs.begin()->first.starts_with(one)) prefix = one;
    for (auto& [tensor_name, tensor] : theirs) {
      const auto ours =
          tensor_name.starts_with(prefix) ? tensor_name.substr(prefix.size()) : tensor_name;
      weights.push_back({ours, tensor});
    }
  }

  Batch batch(std::int64_t step) const {
    const auto samples = *trace.find("samples")->integer();
    Batch made{data.at("input").slice(step * samples, samples),
               data.at("target").slice(step * samples, samples)};
    for (const auto& input : model.sample.more)
      made.more.push_back(data.at(input.name).slice(step * samples, samples));
    return made;
  }
};

OptimizerConfig adamw(const Value& trace) {
  const Value& given = *trace.find("optimizer");
  OptimizerConfig config;
  config.kind = OptimizerConfig::Kind::adamw;
  config.rate.lr = given.find("lr")->number();
  config.beta1 = (*given.find("betas")->list())[0].number();
  config.beta2 = (*given.find("betas")->list())[1].number();
  config.eps = given.find("eps")->number();
  config.weight_decay = given.find("weight_decay")->number();
  return config;
}

double norm_of(const Tensor& tensor) {
  double squares = 0;
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    squares += static_cast<double>(tensor.f32()[i]) * tensor.f32()[i];
  return std::sqrt(squares);
}

/// The whole model as one stage, before training.
struct Begun {
  Stream stream;
  Stage stage;
  Optimizer optimizer;
  WeightsPtr weights;

  explicit Begun(Family& family, kernels::Precision precision = kernels::Precision::fp32)
      : stream(family.memory),
        stage(family.model, {0, static_cast<int>(family.model.units.size())},
              {.precision = precision}),
        optimizer(adamw(family.trace), stage.parameters(), stage.buffers(), precision) {
    auto made = optimizer.from(stream, family.weights, 0);
    INFO((made.ok() ? "" : made.error().text));
    REQUIRE(made.ok());
    weights = *std::move(made);
  }
};

/// Returns the greatest difference of the logits of the first step's samples from theirs, relative
/// to the greatest logit.
double difference_of_logits(Family& family) {
  Begun begun(family);
  const auto logits =
      begun.stage.evaluate(begun.stream, *begun.weights, family.batch(0).inputs()).stream;
  begun.stream.wait();
  const Tensor& theirs = family.data.at("logits");
  REQUIRE(logits.shape() == theirs.shape());
  double most = 0, greatest = 0;
  const auto spans = family.data.find("span");
  const bool has_padding = spans != family.data.end() && family.model.kind == "bert";
  for (std::int64_t i = 0; i < theirs.count(); ++i) {
    // Padding looks at nothing here, and at the text there.
    const auto row = i / theirs.shape().last();
    if (has_padding && spans->second.data<std::int32_t>()[2 * row + 1] == 0) continue;
    const double wanted = theirs.f32()[i];
    most = std::max(most, std::abs(logits.f32()[i] - wanted));
    greatest = std::max(greatest, std::abs(wanted));
  }
  return most / greatest;
}

constexpr double tolerance = 1e-5;

/// Returns whether logits of a text that is read in two parts, and then token by token, have the
/// bits of passes over all of it.
bool continues_with_equal_bits(Family& family, const kernels::Precision precision) {
  Begun begun(family, precision);
  auto& [stream, stage, optimizer, weights] = begun;
  const auto context = family.model.sample.input[0];
  Tensor tokens = stream.make({1, context}, DType::i32);
  for (std::int64_t i = 0; i < context; ++i)
    tokens.data<std::int32_t>()[i] = static_cast<std::int32_t>((i * i * 7 + i * 3 + 5) % 48);
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return tokens.reshaped({context, 1}).slice(first, count).reshaped({1, count});
  };
  const auto last = [](const Tensor& logits) {
    return std::vector<float>(logits.f32() + logits.count() - logits.shape().last(),
                              logits.f32() + logits.count());
  };
  std::map<std::int64_t, std::vector<float>> whole;  // The logits by the length of the text.
  for (std::int64_t length = 1; length <= context; ++length)
    whole[length] = last(stage.evaluate(stream, *weights, part(0, length)).stream);
  for (const std::int64_t prompt : {1, 2, 5, 16, 31, 32, 33, 63, 64, 65, 128, 129}) {
    if (prompt > context) continue;
    auto text = stage.begin_text(context);
    const Tensor logits =
        stage.continue_text(stream, *weights, {part(0, prompt), prompt}, text).stream;
    // Each row of a prompt, not the last alone.
    for (std::int64_t length = 1; length <= prompt; ++length)
      if (last(logits.reshaped({prompt, logits.shape().last()}).slice(0, length)) != whole[length])
        return false;
    while (text.tokens < context) {
      const std::int64_t count = text.tokens == prompt && prompt + 3 <= context ? 3 : 1;
      const Tensor next =
          stage.continue_text(stream, *weights, {part(text.tokens, count), count}, text).stream;
      if (last(next) != whole[text.tokens]) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("families of Hugging Face train as in transformers", "[models][families]") {
  const std::string name =
      GENERATE("gpt2", "llama", "llama3", "linear", "yarn", "mistral", "qwen2", "qwen3", "gpt_neox",
               "gpt_neox_serial", "gptj", "phi", "gemma", "gemma2", "mixtral", "qwen3_moe",
               "qwen3_moe_sparse", "t5", "t5_v1_1", "bert", "bert_pairs");
  CAPTURE(name);
  Family family(name);
  CHECK(difference_of_logits(family) < tolerance);

  Begun begun(family);
  auto& [stream, stage, optimizer, weights] = begun;
  const auto first = family.batch(0);
  const auto targets = first.target.count();
  const auto counted = targets - std::ranges::count(first.target.numbers<std::int32_t>(), -100);
  // The optimizer makes means over the targets that count of sums that weigh all.
  stage.begin_step(Share::whole(1, 1), counted);
  stage.forward(stream, {.targets = {targets, counted}}, *weights, first.inputs(), first.target);
  stage.backward(stream, 0, *weights, {});
  auto gradients = join(stream, {stage.take_gradients()});
  double whole = 0;
  for (const auto& entry : *family.trace.find("gradient_norms")->map())
    whole = std::max(whole, entry.value.number());
  for (const auto& [theirs, value, position] : *family.trace.find("gradient_norms")->map()) {
    const auto ours =
        theirs.starts_with(family.prefix) ? theirs.substr(family.prefix.size()) : theirs;
    CAPTURE(theirs);
    const double norm = norm_of(optimizer.gradient(stream, gradients, ours));
    // Biases of keys have no effect, and so no gradient but rounding errors.
    CHECK(std::abs(norm - value.number()) < std::max(1e-4 * value.number(), 1e-6 * whole));
  }

  Pipeline pipeline({.model = family.model, .optimizer = adamw(family.trace), .micro_batches = 1},
                    {});
  pipeline.start_from(family.weights);
  const auto& losses = *family.trace.find("losses")->list();
  for (std::size_t step = 0; step < losses.size(); ++step) {
    CAPTURE(step);
    const auto result = pipeline.step(family.batch(static_cast<std::int64_t>(step)));
    CHECK(relative(result.loss, losses[step].number()) < 1e-5);
  }
}

TEST_CASE("types of tokens are seen in the logits of BERT", "[models][families]") {
  Family blind("bert_pairs", {"pairs=false"});
  CHECK(difference_of_logits(blind) > 1e-3);
  Family swapped("bert_pairs");
  Tensor& types = swapped.data.at("token_types");
  Tensor others = Tensor::make(swapped.memory, types.shape(), DType::i32);
  for (std::int64_t i = 0; i < types.count(); ++i)
    others.data<std::int32_t>()[i] = 1 - types.data<std::int32_t>()[i];
  types = others;
  CHECK(difference_of_logits(swapped) > 1e-3);
}

TEST_CASE("a wrong balance loss is seen in the gradients of routers", "[models][families]") {
  const auto [name, router] =
      GENERATE(std::pair("mixtral", "model.layers.0.block_sparse_moe.gate.weight"),
               std::pair("qwen3_moe_sparse", "model.layers.1.mlp.gate.weight"));
  const std::string change = GENERATE("balance=0.3", "balance=0.303", "balanced=false");
  CAPTURE(name, change);
  Family family(name, {change});
  Begun begun(family);
  auto& [stream, stage, optimizer, weights] = begun;
  const auto first = family.batch(0);
  const auto targets = first.target.count();
  stage.begin_step(Share::whole(1, 1), targets);
  stage.forward(stream, {.targets = {targets, targets}}, *weights, first.input, first.target);
  stage.backward(stream, 0, *weights, {});
  auto gradients = join(stream, {stage.take_gradients()});
  const double wanted = family.trace.find("gradient_norms")->find(router)->number();
  const double norm = norm_of(optimizer.gradient(stream, gradients, router));
  CHECK((relative(norm, wanted) < 1e-4) == (change == "balance=0.3"));
}

TEST_CASE("a balance loss weighs as much as the targets that count", "[models][families]") {
  const std::string router = "model.layers.0.block_sparse_moe.gate.weight";
  const auto norm_with = [&](const std::string& change, std::int64_t counted) {
    Family family("mixtral", {change});
    Begun begun(family);
    auto& [stream, stage, optimizer, weights] = begun;
    const auto first = family.batch(0);
    stage.begin_step(Share::whole(1, 1), first.target.count());
    stage.forward(stream, {.targets = {first.target.count(), counted}}, *weights, first.input,
                  first.target);
    stage.backward(stream, 0, *weights, {});
    auto gradients = join(stream, {stage.take_gradients()});
    return norm_of(optimizer.gradient(stream, gradients, router));
  };
  CHECK(norm_with("balance=0.25", 32) != norm_with("balance=0.5", 32));
  CHECK(norm_with("balance=0.25", 32) == norm_with("balance=0.5", 16));
  CHECK(norm_with("balance=0.25", 0) == norm_with("balanced=false", 32));
}

TEST_CASE("families continue a text with the bits of passes over all of it", "[models][families]") {
  const std::string name = GENERATE("gpt2", "llama", "llama3", "linear", "yarn", "mistral", "qwen2",
                                    "qwen3", "gpt_neox", "gpt_neox_serial", "gptj", "phi", "gemma",
                                    "gemma2", "mixtral", "qwen3_moe", "qwen3_moe_sparse");
  CAPTURE(name);
  Family family(name);
  CHECK(continues_with_equal_bits(family, kernels::Precision::fp32));
  CHECK(continues_with_equal_bits(family, kernels::Precision::bf16_pairs));
  // GPT-2 has a row for each position, and no more.
  if (name == "gpt2") return;
  Family longer(name, {"context=133"});
  CHECK(continues_with_equal_bits(longer, kernels::Precision::fp32));
}

TEST_CASE("a wrong step of a family is seen in its logits", "[models][families]") {
  struct Fault {
    std::string family, kind, right, wrong;
  };
  const auto [name, kind, right, wrong] = GENERATE(
      Fault{"gptj", "gptj", "pairs = \"neighbours\"", "pairs = \"halves\""},
      Fault{"gpt_neox", "gpt_neox", "order = \"per_head\"", "order = \"qkv\""},
      Fault{"gemma", "gemma", "offset = 1.0", "offset = 0.0"},
      Fault{"gemma", "gemma", "scale = \"sqrt(width)\"", "scale = 1.0"},
      Fault{"gemma", "gemma", "activation = \"gelu_tanh\"", "activation = \"gelu\""},
      Fault{"mixtral", "mixtral", "renormalise = true", "renormalise = false"},
      Fault{"mixtral", "mixtral", "\"w1\", \"w3\"", "\"w3\", \"w1\""},
      Fault{"t5", "t5", "{ scale = \"s\", when = \"tied and scaled\" },", ""},
      Fault{"t5", "t5", "/decoder.block.0{far}", "/encoder.block.0{far}"},
      Fault{"t5", "t5", "span = \"span\", relative", "span = \"span\", distance = 64, relative"},
      Fault{"t5", "t5", "{ keep = \"memory\" }", "\"relu\", { keep = \"memory\" }"},
      Fault{"t5_v1_1", "t5", "when = \"tied and scaled\"", "when = \"true\""},
      Fault{"t5_v1_1", "t5", "\"wi_0\", \"wi_1\"", "\"wi_1\", \"wi_0\""},
      Fault{"bert", "bert", "row = \"if(pairs, none, 0)\"", "row = 1"},
      Fault{"bert", "bert", "{ act = \"gelu\" }", "{ act = \"gelu_tanh\" }"});
  CAPTURE(name, right, wrong);
  Family family(name);
  std::string text(config::model_kind_text(kind));
  const auto at = text.find(right);
  REQUIRE(at != text.npos);
  const auto options = options_of(name, {});
  const auto build = [&] {
    const auto tree = config::parse_toml(text);
    REQUIRE(tree.ok());
    const auto read = ModelKind::read(*tree);
    REQUIRE(std::holds_alternative<ModelKind>(read));
    const auto& described = std::get<ModelKind>(read);
    auto built = described.build(*complete(described.options(), options));
    REQUIRE(built.ok());
    family.model = *std::move(built);
  };
  build();
  CHECK(difference_of_logits(family) < tolerance);
  text.replace(at, right.size(), wrong);
  build();
  CHECK(difference_of_logits(family) > 10 * tolerance);
}

TEST_CASE("spans that show padding are seen in the logits of a family", "[models][families]") {
  const auto [name, input, end] =
      GENERATE(std::tuple("t5", "span", 24), std::tuple("t5", "memory_span", 24),
               std::tuple("bert", "span", 16));
  CAPTURE(name, input);
  Family family(name);
  auto& spans = family.data.at(input);
  for (std::int64_t i = 1; i < spans.count(); i += 2)
    if (auto& last = spans.data<std::int32_t>()[i]; last > 0) last = end;
  CHECK(difference_of_logits(family) > 10 * tolerance);
}

TEST_CASE("a wrong option of a family is seen in its logits", "[models][families]") {
  struct Fault {
    std::string family, change;
  };
  const auto [name, change] = GENERATE(
      Fault{"llama", "rope_theta=10100"}, Fault{"llama", "norm_eps=1e-2"},
      Fault{"llama3", "rope_type=default"}, Fault{"llama3", "rope_type=linear"},
      Fault{"llama3", "rope_factor=8.08"}, Fault{"llama3", "rope_low=1.1"},
      Fault{"llama3", "rope_high=4.04"}, Fault{"llama3", "rope_context=130"},
      Fault{"yarn", "rope_factor=4.04"}, Fault{"yarn", "rope_slow=0.1"},
      Fault{"yarn", "rope_stretch=1"}, Fault{"yarn", "rope_context=640"},
      Fault{"linear", "rope_factor=4.04"}, Fault{"linear", "rope_type=default"},
      Fault{"mistral", "window=4"}, Fault{"mistral", "window=6"}, Fault{"mistral", "window=0"},
      Fault{"qwen2", "qkv_bias=false"}, Fault{"qwen2", "rope_theta=10100"},
      Fault{"qwen3", "qk_norm=false"}, Fault{"qwen3", "norm_eps=1e-3"},
      Fault{"gpt_neox", "rotary=0.25"}, Fault{"gpt_neox", "parallel=false"},
      Fault{"gpt_neox", "rope_theta=10100"}, Fault{"gpt_neox", "activation=gelu_tanh"},
      Fault{"gpt_neox_serial", "parallel=true"}, Fault{"gptj", "rotary=6"},
      Fault{"phi", "rotary=1"}, Fault{"phi", "rope_theta=10100"},
      Fault{"gemma", "rope_theta=10100"}, Fault{"gemma", "query_scale=8"},
      Fault{"gemma2", "window=4"}, Fault{"gemma2", "window=6"}, Fault{"gemma2", "score_cap=0"},
      Fault{"gemma2", "score_cap=4.04"}, Fault{"gemma2", "logit_cap=0"},
      Fault{"gemma2", "logit_cap=12.12"}, Fault{"gemma2", "query_scale=0"},
      Fault{"mixtral", "experts_per_token=1"}, Fault{"mixtral", "experts_per_token=3"},
      Fault{"mixtral", "rope_theta=10000"}, Fault{"qwen3_moe", "experts_per_token=1"},
      Fault{"qwen3_moe", "renormalise=true"}, Fault{"qwen3_moe_sparse", "renormalise=false"},
      Fault{"qwen3_moe", "qk_norm=false"});
  CAPTURE(name, change);
  Family family(name, {change});
  CHECK(difference_of_logits(family) > 10 * tolerance);
}

namespace {

/// Returns the options of the model for a form of the loss: "loss.z=0.001".
std::vector<std::string> options_of_loss(const Value& form) {
  std::vector<std::string> changes;
  for (const auto& entry : *form.map())
    changes.push_back("loss." + entry.key + "=" + to_json(entry.value));
  return changes;
}

/// Makes the first targets of each sample those that do not count.
void leave_out(Family& family, const Value& counts) {
  if (!family.model.ignore) return;
  Tensor& target = family.data.at("target");
  const auto length = target.shape()[1];
  for (std::size_t row = 0; row < counts.list()->size(); ++row)
    std::fill_n(target.data<std::int32_t>() + static_cast<std::int64_t>(row) * length,
                *(*counts.list())[row].integer(), *family.model.ignore);
}

}  // namespace

TEST_CASE("forms of the loss train as in PyTorch, whatever the micro-batches",
          "[models][families]") {
  const auto all = parsed(families + "llama/losses.json");
  const auto which = GENERATE(0, 1, 2, 3);
  const int micro_batches = GENERATE(1, 2);
  const Value& trace = (*all.find("traces")->list())[static_cast<std::size_t>(which)];
  const Value& form = *trace.find("form");
  CAPTURE(to_json(form), micro_batches);
  Family family("llama", options_of_loss(form));
  leave_out(family, *all.find("left_out"));
  Pipeline pipeline(
      {.model = family.model, .optimizer = adamw(all), .micro_batches = micro_batches}, {});
  pipeline.start_from(family.weights);
  const auto& losses = *trace.find("losses")->list();
  const auto& norms = *trace.find("gradient_norms")->list();
  for (std::size_t step = 0; step < losses.size(); ++step) {
    CAPTURE(step);
    const auto result = pipeline.step(family.batch(static_cast<std::int64_t>(step)));
    CHECK(relative(result.loss, losses[step].number()) < 1e-5);
    CHECK(relative(result.norm, norms[step].number()) < 1e-4);
  }
}

TEST_CASE("a wrong form of the loss is seen in the first step", "[models][families]") {
  const auto all = parsed(families + "llama/losses.json");
  const auto [which, change] =
      GENERATE(std::pair(0, "loss.ignore=-101"), std::pair(1, "loss.smoothing=0.11"),
               std::pair(2, "loss.z=0.0011"), std::pair(3, "loss.z=0.011"),
               std::pair(3, "loss.smoothing=0.22"));
  CAPTURE(which, change);
  const Value& trace = (*all.find("traces")->list())[static_cast<std::size_t>(which)];
  auto options = options_of_loss(*trace.find("form"));
  Family right("llama", options);
  leave_out(right, *all.find("left_out"));
  options.emplace_back(change);
  Family wrong("llama", options);
  if (which != 0) wrong.data.at("target") = right.data.at("target");
  Pipeline pipeline({.model = wrong.model, .optimizer = adamw(all), .micro_batches = 1}, {});
  pipeline.start_from(wrong.weights);
  const auto result = pipeline.step(wrong.batch(0));
  CHECK(relative(result.loss, (*trace.find("losses")->list())[0].number()) > 1e-4);
}
