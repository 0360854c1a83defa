#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "config/model_kinds.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "models/layers/layer_norm.h"
#include "models/layers/linear.h"
#include "models/layers/losses/cross_entropy.h"
#include "models/layers/relu.h"
#include "models/layers/residual.h"
#include "models/layers/sequence.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

/// Everything about a model that is not a number in training.
std::string account_of(const Model& model) {
  std::ostringstream out;
  out << model.kind << " classes " << model.classes << " input " << to_string(model.sample.input)
      << " " << static_cast<int>(model.sample.input_type) << " target "
      << to_string(model.sample.target) << "\n";
  for (const auto& unit : model.units) {
    out << unit.name << " saves " << unit.layer->saved() << "\n";
    for (const auto& p : unit.layer->parameters()) {
      out << "  " << p.name << " " << to_string(p.shape) << " init "
          << static_cast<int>(p.init.kind) << " " << std::hexfloat << p.init.scale
          << std::defaultfloat << " use " << static_cast<int>(p.use) << " place "
          << static_cast<int>(p.place) << " layout " << static_cast<int>(p.layout) << "\n";
    }
    for (const auto& b : unit.layer->buffers())
      out << "  " << b.name << " " << to_string(b.shape) << " " << b.initial << " " << b.share
          << "\n";
  }
  return out.str();
}

struct ShippedCase {
  std::string kind;
  Value options;
};

Value options_table(std::initializer_list<std::pair<const char*, Value>> entries) {
  Value made;
  for (const auto& [key, value] : entries) made.set(key, value);
  return made;
}

std::vector<ShippedCase> shipped_cases() {
  std::vector<ShippedCase> all;
  for (const auto& dims : {Value::List{3, 2}, Value::List{6, 8, 5}, Value::List{6, 8, 7, 9, 5}})
    all.push_back({"mlp", options_table({{"dims", dims}, {"dropout", 0.3}})});
  for (const int layers : {1, 2, 3, 7})
    for (const bool tied : {true, false})
      for (const int heads : {1, 2, 4}) {
        auto options = options_table({{"vocab", 13},
                                      {"context", 9},
                                      {"width", 8},
                                      {"layers", layers},
                                      {"heads", heads},
                                      {"tied", tied},
                                      {"dropout", 0.1}});
        all.push_back({"gpt2", options});
        for (const int ffn : {0, 20})
          for (const int kv_heads : {0, 1, heads}) {
            auto more = options;
            more.set("ffn", ffn);
            more.set("kv_heads", kv_heads);
            more.set("norm_eps", ffn == 0 ? 1e-5 : 1e-6);
            more.set("rope_theta", ffn == 0 ? 10000.0 : 500000.0);
            all.push_back({"llama", more});
          }
      }
  for (const int layers : {1, 2, 3})
    for (const int patch : {1, 2, 3, 6})
      all.push_back({"vit", options_table({{"image", 6},
                                           {"patch", patch},
                                           {"channels", patch},
                                           {"width", 8},
                                           {"layers", layers},
                                           {"heads", 2},
                                           {"classes", 5},
                                           {"dropout", 0.1}})});
  for (const auto& [widths, blocks] : {std::pair{Value::List{4}, Value::List{1}},
                                       {Value::List{4, 4}, Value::List{1, 2}},
                                       {Value::List{4, 6}, Value::List{2, 1}},
                                       {Value::List{4, 6, 3}, Value::List{1, 2, 3}}})
    for (const int channels : {1, 3})
      all.push_back({"resnet", options_table({{"channels", channels},
                                              {"widths", widths},
                                              {"blocks", blocks},
                                              {"classes", 5},
                                              {"dropout", 0.2}})});
  return all;
}

Digest trained_digest(const Model& model) {
  Pipeline pipeline({.model = model,
                     .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
                     .micro_batches = 2},
                    {});
  pipeline.start(3);
  for (std::uint64_t step = 0; step < 2; ++step)
    pipeline.step(made_batch(pipeline.stream(), model, 4, 11 + step));
  return pipeline.digest();
}

}  // namespace

TEST_CASE("a residual that begins with a norm has the bits of a plain one",
          "[models][description]") {
  // The description makes a stream with fused kernels, and C++ here a plain residual.
  const auto tree = config::parse_toml(R"(
model = { format = 1, name = "one", help = "One residual." }
input.row = { type = "f32", shape = [6] }
loss = { kind = "cross_entropy", classes = 5 }
part = [{ body = [{ residual = [{ norm = "n", kind = "layer" }, { linear = "a", out = 6 }] },
  "relu", { linear = "b", out = 5 }] }]
)");
  REQUIRE(tree.ok());
  const auto kind = ModelKind::read(*tree);
  REQUIRE(std::holds_alternative<ModelKind>(kind));
  const auto described = std::get<ModelKind>(kind).build(Value(Value::Map{}));
  REQUIRE(described.ok());
  const auto linear = [](const std::string& name, std::int64_t outputs) {
    return std::make_unique<const Linear>(
        Parameter{.name = name + ".weight",
                  .shape = {outputs, 6},
                  .init = Init::by_inputs(6),
                  .use = Parameter::Use::matrix},
        Parameter{.name = name + ".bias", .shape = {outputs}, .init = Init::by_inputs(6)});
  };
  Model built{.kind = "one",
              .units = {},
              .loss = std::make_unique<const CrossEntropy>(),
              .sample = {.input = {6}, .input_type = DType::f32, .target = {}},
              .classes = 5};
  built.units.push_back(
      {"one", in_sequence(std::make_unique<const Residual>(in_sequence(
                              std::make_unique<const LayerNorm>("n", 6, 1e-5f), linear("a", 6))),
                          std::make_unique<const Relu>(), linear("b", 5))});
  CHECK(account_of(*described) == account_of(built));
  CHECK(trained_digest(*described) == trained_digest(built));
}

TEST_CASE("a shared expert has the bits of a network beside the mixture", "[models][description]") {
  const auto digest_of_body = [](const std::string& body) {
    const auto tree = config::parse_toml(R"toml(
model = { format = 1, name = "one", help = "One mixture." }
input.row = { type = "f32", shape = [6] }
loss = { kind = "cross_entropy", classes = 5 }
every.any = { init = "normal(0.3)" }
every.moe = { proj = ["g", "u", "d"], count = 4, top = 2, hidden = 3, balance = 0.1 }
every.feed_forward = { proj = ["g", "u", "d"], activation = "silu" }
part = [{ body = [)toml" + body + R"toml(, { linear = "b", out = 5 }] }]
)toml");
    REQUIRE(tree.ok());
    const auto kind = ModelKind::read(*tree);
    REQUIRE(std::holds_alternative<ModelKind>(kind));
    const auto described = std::get<ModelKind>(kind).build(Value(Value::Map{}));
    REQUIRE(described.ok());
    return to_string(trained_digest(*described));
  };
  const auto shared = digest_of_body(R"({ moe = "m", shared = "shared", shared_hidden = 7 })");
  CHECK(shared == digest_of_body(R"({ parallel = [[{ moe = "m" }],
                                     [{ feed_forward = "m.shared", hidden = 7 }]] })"));
  CHECK(shared != digest_of_body(R"({ moe = "m", shared = "shared" })"));
  CHECK(shared != digest_of_body(R"({ moe = "m" })"));
}

TEST_CASE("descriptions expand to the models of the first release", "[models][description]") {
  // The digests of what C++ built before models were descriptions, and of its trained weights.
  std::string accounts;
  std::map<std::string, std::string> trained;
  for (const auto& [kind, options] : shipped_cases()) {
    const auto* found = config::find_model_kind(kind);
    REQUIRE(found);
    const auto table = complete(found->options(), options);
    REQUIRE(table.ok());
    const auto model = found->build(*table);
    CAPTURE(kind, to_json(options));
    if (!model.ok()) {
      accounts += model.error().text + "\n";
      continue;
    }
    accounts += account_of(*model);
    trained[kind] += to_string(trained_digest(*model));
  }
  CHECK(to_string(digest_of(accounts)) == "adfb9d649164e9d68fb1f7f77f4936b1");
  CHECK(to_string(digest_of(trained["mlp"])) == "1a8090a436c0f246254cfd059e68c4d3");
  CHECK(to_string(digest_of(trained["gpt2"])) == "153b8f4ce91dbea49edcc3d8abe8bd30");
  CHECK(to_string(digest_of(trained["llama"])) == "bba00a65c870d011aec34d58c89e873a");
  CHECK(to_string(digest_of(trained["vit"])) == "77c86c5ccb4235bee2f4b0918c418ce0");
  CHECK(to_string(digest_of(trained["resnet"])) == "0468e9558adb79dca17924cc90e189b6");
}

TEST_CASE("families expand to the models of their first release", "[models][description]") {
  const auto with = [](std::initializer_list<std::pair<const char*, Value>> more) {
    Value options = options_table(more);
    for (const auto& [key, value] :
         {std::pair{"vocab", 13}, {"context", 9}, {"width", 16}, {"layers", 2}, {"heads", 4}})
      if (!options.find(key)) options.set(key, value);
    options.set("dropout", 0.1);
    return options;
  };
  const std::vector<ShippedCase> cases{
      {"llama", with({{"window", 3}, {"head_width", 6}})},
      {"llama", with({{"qkv_bias", true}})},
      {"llama", with({{"qk_norm", true}, {"head_width", 6}, {"tied", true}})},
      {"llama", with({{"rope_type", "linear"}, {"rope_factor", 4.0}})},
      {"llama", with({{"rope_type", "llama3"}, {"rope_factor", 8.0}, {"rope_context", 16}})},
      {"gpt_neox", with({{"rotary", 0.5}})},
      {"gpt_neox", with({{"rotary", 1.0}, {"parallel", false}, {"activation", "gelu_tanh"}})},
      {"gptj", with({{"rotary", 2}})},
      {"phi", with({{"rotary", 0.5}})},
      {"gemma", with({{"head_width", 6}, {"ffn", 20}})},
      {"gemma", with({{"head_width", 6},
                      {"ffn", 20},
                      {"window", 3},
                      {"post_norms", true},
                      {"score_cap", 2.0},
                      {"logit_cap", 3.0},
                      {"query_scale", 5}})},
      {"mixtral", with({{"ffn", 20}, {"experts", 4}, {"window", 3}, {"balance", 0.1}})},
      {"qwen3_moe", with({{"ffn", 20},
                          {"experts", 5},
                          {"experts_per_token", 3},
                          {"expert_ffn", 6},
                          {"head_width", 6},
                          {"sparse_step", 2},
                          {"router_z", 0.01}})}};
  std::string accounts, of_mixtures;
  std::map<std::string, std::string> trained;
  for (const auto& [kind, options] : cases) {
    const auto* found = config::find_model_kind(kind);
    REQUIRE(found);
    const auto complete_options = complete(found->options(), options);
    REQUIRE(complete_options.ok());
    const auto model = found->build(*complete_options);
    CAPTURE(kind, to_json(options));
    REQUIRE(model.ok());
    (kind == "mixtral" || kind == "qwen3_moe" ? of_mixtures : accounts) += account_of(*model);
    trained[kind] += to_string(trained_digest(*model));
  }
  CHECK(to_string(digest_of(accounts)) == "d0e818abf0655ec6a46a574eaa1164a8");
  CHECK(to_string(digest_of(of_mixtures)) == "bb07e0aedd94a7c6558f7cd507120ff7");
  CHECK(to_string(digest_of(trained["llama"])) == "ed7a29ac784a9ec76b3694eb2c43c7e2");
  CHECK(to_string(digest_of(trained["gpt_neox"])) == "560a26b483d00b5cd83613729aa6196b");
  CHECK(to_string(digest_of(trained["gptj"])) == "2a5fc1cc6ced800f6d15c775df4c4799");
  CHECK(to_string(digest_of(trained["phi"])) == "41ea1800af1631327efb785b1d21bba7");
  CHECK(to_string(digest_of(trained["gemma"])) == "a01eff8eca6757c93534903be91567ec");
  CHECK(to_string(digest_of(trained["mixtral"])) == "55ca3c009b4f507b761b941fc433c188");
  CHECK(to_string(digest_of(trained["qwen3_moe"])) == "31ee7f6cce0f2f56208df18efe4c2876");
}

TEST_CASE("presets have the numbers of parameters that are published", "[models][description]") {
  const std::pair<const char*, std::int64_t> published[] = {{"resnet18", 11'689'512},
                                                            {"resnet34", 21'797'672},
                                                            {"resnet50", 25'557'032},
                                                            {"resnet101", 44'549'160},
                                                            {"resnet152", 60'192'808},
                                                            {"wide_resnet50_2", 68'883'240},
                                                            {"wide_resnet101_2", 126'886'696},
                                                            {"resnext50_32x4d", 25'028'904},
                                                            {"resnext101_32x8d", 88'791'336},
                                                            {"resnext101_64x4d", 83'455'272},
                                                            {"vit_tiny_patch16_224", 5'717'416},
                                                            {"vit_small_patch32_224", 22'878'952},
                                                            {"vit_base_patch16_224", 86'567'656},
                                                            {"vit_large_patch16_224", 304'326'632},
                                                            {"vit_huge_patch14_224", 632'045'800}};
  for (const auto& [name, wanted] : published) {
    CAPTURE(name);
    const auto found = config::find_preset(name);
    REQUIRE(found);
    CHECK(found.kind->name() == (std::string(name).starts_with("vit") ? "vit" : "resnet"));
    const auto options = complete(found.kind->options(), found.preset->options);
    REQUIRE(options.ok());
    const auto model = found.kind->build(*options);
    REQUIRE(model.ok());
    std::int64_t count = 0;
    for (const auto& unit : model->units)
      for (const auto& parameter : unit.layer->parameters()) count += parameter.shape.count();
    CHECK(count == wanted);
  }
  CHECK_FALSE(config::find_preset("resnet"));
  CHECK_FALSE(config::find_preset("resnet51"));
}

TEST_CASE("mixtures of experts have the numbers of parameters that are published",
          "[models][description]") {
  const auto counts_of = [](const char* kind, const Value& options) {
    const auto* found = config::find_model_kind(kind);
    const auto table = complete(found->options(), options);
    REQUIRE(table.ok());
    const auto model = found->build(*table);
    REQUIRE(model.ok());
    std::int64_t all = 0;
    double used = 0;
    for (const auto& unit : model->units)
      for (const auto& parameter : unit.layer->parameters()) {
        all += parameter.shape.count();
        used += parameter.share_of_rows * static_cast<double>(parameter.shape.count());
      }
    return std::pair(all, used);
  };
  const auto [mixtral, of_mixtral] = counts_of("mixtral", options_table({{"vocab", 32000},
                                                                         {"context", 32768},
                                                                         {"width", 4096},
                                                                         {"layers", 32},
                                                                         {"heads", 32},
                                                                         {"kv_heads", 8},
                                                                         {"ffn", 14336}}));
  CHECK(mixtral == 46'702'792'704);  // Mixtral 8x7B.
  CHECK(of_mixtral == Approx(12.9e9).epsilon(0.01));
  const auto [qwen, of_qwen] = counts_of("qwen3_moe", options_table({{"vocab", 151936},
                                                                     {"context", 40960},
                                                                     {"width", 2048},
                                                                     {"layers", 48},
                                                                     {"heads", 32},
                                                                     {"kv_heads", 4},
                                                                     {"head_width", 128}}));
  CHECK(qwen == 30'532'122'624);  // Qwen3 30B A3B.
  CHECK(of_qwen == Approx(3.3e9).epsilon(0.02));
}
