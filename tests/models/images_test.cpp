// Compares networks for images with torchvision and timm in float64; see tests/golden/images.py.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "catch.h"
#include "config/model_kinds.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "golden_trace.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"
#include "tests/own_unet.h"

namespace troupe::models {
namespace {

const std::string networks = TROUPE_TEST_DATA "/../golden/";

/// A network with the weights of a library, and what that library computes.
struct Network {
  MemoryPool memory;
  Value trace;
  Model model;
  std::vector<NamedTensor> weights;
  std::map<std::string, Tensor> data;

  /// Without a description, the network is one of the program's kinds.
  explicit Network(const std::string& name, const std::string& description = {}) {
    std::ifstream file(networks + name + "/trace.json");
    std::ostringstream text;
    text << file.rdbuf();
    auto read = parse_json(text.str());
    REQUIRE(read.ok());
    trace = *std::move(read);
    if (description.empty()) {
      auto built = config::model_from(*trace.find("model"));
      INFO((built.ok() ? "" : built.error().text));
      REQUIRE(built.ok());
      model = *std::move(built);
    } else {
      model = described(description, *trace.find("model"));
    }
    for (auto& [key, tensor] : tensors_in(name + "/model.safetensors"))
      if (!key.ends_with("num_batches_tracked")) weights.push_back({key, tensor});
    data = tensors_in(name + "/data.safetensors");
  }

  std::map<std::string, Tensor> tensors_in(const std::string& path) {
    const auto files = storage::disk_files();
    const auto file = storage::Safetensors::open(*files, networks + path);
    REQUIRE(file.ok());
    std::map<std::string, Tensor> all;
    for (const auto& view : file->tensors()) {
      auto tensor = storage::load(view, memory);
      REQUIRE(tensor.ok());
      all.emplace(view.name, std::move(*tensor));
    }
    return all;
  }

  Batch batch(std::int64_t step) const {
    const auto samples = *trace.find("samples")->integer();
    return {data.at("input").slice(step * samples, samples),
            data.at("target").slice(step * samples, samples)};
  }
};

OptimizerConfig adamw(const Value& trace) {
  const Value& given = *trace.find("optimizer");
  auto config = OptimizerConfig::of(OptimizerConfig::Kind::adamw);
  config.rate.lr = given.find("lr")->number();
  config.beta1 = (*given.find("betas")->list())[0].number();
  config.beta2 = (*given.find("betas")->list())[1].number();
  config.eps = given.find("eps")->number();
  config.weight_decay = given.find("weight_decay")->number();
  return config;
}

/// The whole network as one stage, before training.
struct Begun {
  Stream stream;
  Stage stage;
  Optimizer optimizer;
  WeightsPtr weights;

  explicit Begun(Network& network)
      : stream(network.memory),
        stage(network.model, {0, static_cast<int>(network.model.units.size())}, {}),
        optimizer(adamw(network.trace), stage.parameters(), stage.buffers(),
                  kernels::Precision::fp32) {
    auto made = optimizer.from(stream, network.weights, 0);
    INFO((made.ok() ? "" : made.error().text));
    REQUIRE(made.ok());
    weights = *std::move(made);
  }
};

/// Returns the greatest difference of logits in evaluation, relative to the greatest logit.
double difference_of_logits(Network& network) {
  Begun begun(network);
  const auto logits =
      begun.stage.evaluate(begun.stream, *begun.weights, network.batch(0).input).stream;
  const Tensor& theirs = network.data.at("logits");
  REQUIRE(logits.shape() == theirs.shape());
  double most = 0, greatest = 0;
  for (std::int64_t i = 0; i < theirs.count(); ++i) {
    const double wanted = theirs.f32()[i];
    most = std::max(most, std::abs(logits.f32()[i] - wanted));
    greatest = std::max(greatest, std::abs(wanted));
  }
  return most / greatest;
}

/// Returns the description of a network that is none of the program's kinds.
std::string description_of(const std::string& name) {
  if (name == "segmenter") return tests::own_segmenter;
  return name == "unet" ? tests::own_unet : "";
}

std::int64_t counted_in(const Tensor& targets) {
  if (targets.dtype() == DType::i32) return targets.count();
  return std::ranges::count_if(targets.numbers<float>(),
                               [](float target) { return !std::isnan(target); });
}

double norm_of(const Tensor& tensor) {
  double squares = 0;
  for (const float number : tensor.numbers<float>())
    squares += static_cast<double>(number) * static_cast<double>(number);
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("networks for images train as in torch, torchvision and timm", "[models][images]") {
  const std::string name = GENERATE("images/resnet", "images/wide_resnet", "images/resnext",
                                    "images/basic", "images/vit", "unet", "segmenter");
  CAPTURE(name);
  Network network(name, description_of(name));
  CHECK(difference_of_logits(network) < 1e-5);

  Begun begun(network);
  auto& [stream, stage, optimizer, weights] = begun;
  const auto first = network.batch(0);
  stage.begin_step(Share::whole(1, 1), counted_in(first.target));
  stage.forward(stream, {}, *weights, first.input, first.target);
  stage.backward(stream, 0, *weights, {});
  auto gradients = join(stream, {stage.take_gradients()});
  for (const auto& [parameter, value, position] : *network.trace.find("gradient_norms")->map()) {
    CAPTURE(parameter);
    const double norm = norm_of(optimizer.gradient(stream, gradients, parameter));
    CHECK(relative(norm, value.number()) < 1e-4);
  }

  Pipeline pipeline({.model = network.model, .optimizer = adamw(network.trace), .micro_batches = 1},
                    {});
  pipeline.start_from(network.weights);
  const auto& losses = *network.trace.find("losses")->list();
  for (std::size_t step = 0; step < losses.size(); ++step) {
    CAPTURE(step);
    const auto result = pipeline.step(network.batch(static_cast<std::int64_t>(step)));
    CHECK(relative(result.loss, losses[step].number()) < 1e-5);
  }
}

TEST_CASE("a wrong step of a network for images is seen in its logits", "[models][images]") {
  // Parameters have the same names and shapes with these faults.
  Network network("images/resnet");
  std::string text(config::model_kind_text("resnet"));
  const auto build = [&](const std::string& right, const std::string& wrong) {
    auto changed = text;
    const auto at = changed.find(right);
    REQUIRE(at != changed.npos);
    changed.replace(at, right.size(), wrong);
    const auto tree = config::parse_toml(changed);
    REQUIRE(tree.ok());
    const auto kind = ModelKind::read(*tree);
    REQUIRE(std::holds_alternative<ModelKind>(kind));
    const auto& described = std::get<ModelKind>(kind);
    auto built = described.build(*complete(described.options(), *network.trace.find("model")));
    REQUIRE(built.ok());
    network.model = *std::move(built);
  };
  build("pool = \"max\"", "pool = \"max\"");
  CHECK(difference_of_logits(network) < 1e-5);
  build("pool = \"max\"", "pool = \"average\"");
  CHECK(difference_of_logits(network) > 1e-3);
  build("kernel = 3, stride = 2, padding = 1, when", "kernel = 2, stride = 2, padding = 1, when");
  CHECK(difference_of_logits(network) > 1e-3);
}

TEST_CASE("a skip from the wrong level is seen in the logits", "[models][images]") {
  // Parameters have the same names and shapes with these faults.
  Network network("unet", tests::own_unet);
  CHECK(difference_of_logits(network) < 1e-5);
  const auto replaced = [](std::string text, const std::string& right, const std::string& wrong) {
    const auto at = text.find(right);
    REQUIRE(at != text.npos);
    return text.replace(at, right.size(), wrong);
  };
  const auto difference = [&](const std::string& text) {
    network.model = described(text, *network.trace.find("model"));
    return difference_of_logits(network);
  };
  // Twice the channels of level 0, at half their size, in place of those of level 1.
  const auto kept =
      replaced(tests::own_unet, R"({ keep = "skip{i}" }, { pool = "max", kernel = 2 }])",
               R"({ keep = "skip{i}", when = "i == 0" }, { pool = "max", kernel = 2 },
  { keep = "small", when = "i == 0" }])");
  CHECK(difference(replaced(kept, R"({ concat = "skip{level}" })",
                            R"({ concat = "skip0", when = "level == 0" },
  { when = "level == 1", do = [{ concat = "small" }, { concat = "small" }] })")) > 1e-3);
  CHECK(difference(replaced(tests::own_unet, R"("relu",
  { keep = "skip{i}" },)",
                            R"({ keep = "skip{i}" }, "relu",)")) > 1e-3);
}

TEST_CASE("another loss of numbers is seen in the losses", "[models][images]") {
  Network network("segmenter", tests::own_segmenter);
  const double wanted = (*network.trace.find("losses")->list())[0].number();
  const auto loss_with = [&](const std::string& kind, float target) {
    std::string text = tests::own_segmenter;
    text.replace(text.find("\"binary\""), 8, "\"" + kind + "\"");
    network.model = described(text, *network.trace.find("model"));
    Pipeline pipeline(
        {.model = network.model, .optimizer = adamw(network.trace), .micro_batches = 1}, {});
    pipeline.start_from(network.weights);
    auto batch = network.batch(0);
    if (!std::isnan(target))
      for (std::int64_t i = 0; i < batch.target.count(); ++i)
        if (std::isnan(batch.target.f32()[i])) batch.target.f32()[i] = target;
    return pipeline.step(batch).loss;
  };
  CHECK(relative(loss_with("binary", std::nanf("")), wanted) < 1e-5);
  CHECK(relative(loss_with("squared", std::nanf("")), wanted) > 1e-3);
  CHECK(relative(loss_with("binary", 0.0f), wanted) > 1e-3);
}

}  // namespace troupe::models
