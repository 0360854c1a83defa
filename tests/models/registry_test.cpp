#include <map>

#include "catch.h"
#include "config/model_kinds.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

std::string error_of(std::string_view kind, Value options) {
  const auto* found = config::find_model_kind(kind);
  REQUIRE(found);
  const auto table = complete(found->options(), options);
  REQUIRE(table.ok());
  const auto model = found->build(*table);
  return model.ok() ? std::string() : model.error().text;
}

Value with(Value options, const char* key, Value value) {
  options.set(key, std::move(value));
  return options;
}

Value gpt2_options() {
  Value options;
  for (const auto& [key, value] :
       {std::pair{"vocab", 67}, {"context", 24}, {"width", 32}, {"layers", 4}, {"heads", 4}})
    options.set(key, value);
  return options;
}

using Shapes = std::map<std::string, std::string>;

Shapes shapes_of(const Model& model) {
  Shapes shapes;
  for (const auto& unit : model.units) {
    for (const auto& parameter : unit.layer->parameters())
      shapes[parameter.name] = to_string(parameter.shape);
    for (const auto& buffer : unit.layer->buffers()) shapes[buffer.name] = to_string(buffer.shape);
  }
  return shapes;
}

Shapes golden_shapes(const std::string& kind) {
  const auto files = storage::disk_files();
  const auto file = storage::Safetensors::open(
      *files, std::string(TROUPE_TEST_DATA) + "/../golden/" + kind + "/init.safetensors");
  REQUIRE(file.ok());
  Shapes shapes;
  for (const auto& view : file->tensors()) shapes[view.name] = to_string(view.shape);
  return shapes;
}

}  // namespace

TEST_CASE("each kind of models has help for every key", "[models]") {
  std::vector<std::string_view> names;
  for (const auto& kind : config::model_kinds()) {
    names.push_back(kind.name());
    CHECK(!kind.help().empty());
    for (const auto& option : kind.options()) {
      CAPTURE(kind.name(), option.name);
      CHECK(option.help.ends_with("."));
      CHECK(option.least <= option.most);
    }
  }
  CHECK(names == std::vector<std::string_view>{"mlp", "gpt2", "llama", "vit", "resnet", "gpt_neox",
                                               "gptj", "phi", "gemma", "mixtral", "qwen3_moe",
                                               "bert", "t5"});
  CHECK(config::find_model_kind("gpt2")->name() == "gpt2");
  CHECK(config::find_model_kind("gpt3") == nullptr);
}

TEST_CASE("parameters have the names and shapes of Hugging Face, timm and torchvision",
          "[models]") {
  CHECK(shapes_of(build("gpt2", gpt2_options())) == golden_shapes("gpt2"));
  const auto mlp = with({}, "dims", Value::List{16, 32, 24, 24, 10});
  CHECK(shapes_of(build("mlp", mlp)) == golden_shapes("mlp"));
  auto llama = with(with(gpt2_options(), "kv_heads", 2), "ffn", 80);
  CHECK(shapes_of(build("llama", llama)) == golden_shapes("llama"));
  Value vit;
  for (const auto& [key, value] : {std::pair{"image", 16},
                                   {"patch", 4},
                                   {"width", 32},
                                   {"layers", 4},
                                   {"heads", 4},
                                   {"classes", 10}})
    vit.set(key, value);
  CHECK(shapes_of(build("vit", vit)) == golden_shapes("vit"));
  auto resnet = with(with({}, "widths", Value::List{8, 16}), "blocks", Value::List{2, 2});
  CHECK(shapes_of(build("resnet", with(resnet, "classes", 10))) == golden_shapes("resnet"));
}

TEST_CASE("only an untied head has a parameter lm_head.weight", "[models]") {
  CHECK(!shapes_of(build("gpt2", gpt2_options())).contains("lm_head.weight"));
  CHECK(shapes_of(build("gpt2", with(gpt2_options(), "tied", false))).at("lm_head.weight") ==
        "[67, 32]");
  CHECK(!shapes_of(build("llama", with(gpt2_options(), "tied", true))).contains("lm_head.weight"));
}

TEST_CASE("GPT-2 starts with smaller residual projections the more layers it has", "[models]") {
  const Model model = build("gpt2", with(gpt2_options(), "layers", 8));
  std::map<std::string, float> deviations;
  for (const auto& parameter : model.units[3].layer->parameters())
    deviations[parameter.name] = parameter.init.scale;
  CHECK(deviations["h.3.attn.c_attn.weight"] == 0.02f);
  CHECK(deviations["h.3.attn.c_proj.weight"] == 0.005f);  // 0.02 / sqrt(2 * 8)
  CHECK(deviations["h.3.mlp.c_proj.weight"] == 0.005f);
  CHECK(deviations["h.3.mlp.c_proj.bias"] == 0);
}

TEST_CASE("Llama's default feed-forward width follows from its width", "[models]") {
  const auto ffn = [](int width) {
    const Model model = build("llama", with(with(gpt2_options(), "width", width), "layers", 1));
    return shapes_of(model).at("model.layers.0.mlp.down_proj.weight");
  };
  CHECK(ffn(32) == "[32, 256]");
  CHECK(ffn(4096) == "[4096, 11008]");
}

TEST_CASE("a model declares its classes and the shapes of its samples", "[models]") {
  const Model gpt = build("gpt2", gpt2_options());
  CHECK(gpt.units.size() == 4);
  CHECK(gpt.classes == 67);
  CHECK(gpt.sample.takes({24}));
  CHECK(gpt.sample.takes({16}));
  CHECK(!gpt.sample.takes({25}));
  CHECK(!gpt.sample.takes({0}));
  CHECK(!gpt.sample.takes({24, 1}));
  auto resnet = with(with({}, "widths", Value::List{8}), "blocks", Value::List{1});
  const Model images = build("resnet", with(resnet, "classes", 10));
  CHECK(images.sample.takes({3, 32, 28}));
  CHECK(!images.sample.takes({1, 32, 28}));
  CHECK(images.units[0].layer->output({2, 3, 32, 28}) == Shape{2, 10});
}

TEST_CASE("an error about inconsistent keys names them and suggests valid values", "[models]") {
  CHECK(error_of("gpt2", with(gpt2_options(), "heads", 5)) ==
        "model.width = 32 is not divisible by model.heads = 5; nearest: 4, 8");
  CHECK(error_of("gpt2", with(gpt2_options(), "heads", 33)) ==
        "model.width = 32 is not divisible by model.heads = 33; nearest: 32");
  CHECK(error_of("llama", with(gpt2_options(), "kv_heads", 3)) ==
        "model.heads = 4 is not divisible by model.kv_heads = 3; nearest: 2, 4");
  CHECK(error_of("llama", with(with(gpt2_options(), "width", 36), "heads", 4)) ==
        "model.width = 36 / model.heads = 4 (= 9) is odd, but positions rotate pairs of numbers; "
        "choose an even width of a head");
  CHECK(error_of("mlp", with({}, "dims", Value::List{3})) ==
        "model.dims has 1 entries; give the width of the input, of each hidden layer and of the "
        "output: 2 to 4097");
  auto resnet = with(with({}, "widths", Value::List{8, 16}), "blocks", Value::List{2});
  CHECK(error_of("resnet", with(resnet, "classes", 10)) ==
        "model.widths has 2 entries and model.blocks has 1; each group of blocks needs one of "
        "both");
}
