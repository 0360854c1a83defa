#include "config/huggingface/config_json.h"

#include <string>

#include "catch.h"
#include "config/model_kinds.h"
#include "core/json.h"

using namespace troupe;

namespace {

/// The config.json that transformers 5.24 writes for a tiny llama, with other values of some keys.
std::string tiny_llama(const std::string& more = {}) {
  std::string text = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 1, "eos_token_id": 2, "head_dim": 8, "hidden_act": "silu", "hidden_size": 16,
  "initializer_range": 0.02, "intermediate_size": 32, "max_position_embeddings": 16,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 2, "num_hidden_layers": 2,
  "num_key_value_heads": 1, "pad_token_id": null, "pretraining_tp": 1,
  "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
  "tie_word_embeddings": false, "transformers_version": "5.24.0", "use_cache": true,
  "vocab_size": 96})";
  auto config = parse_json(text);
  REQUIRE(config.ok());
  if (!more.empty()) {
    const auto others = parse_json(more);
    REQUIRE(others.ok());
    for (const auto& entry : *others->map()) config->set(entry.key, entry.value);
  }
  return to_json(*config);
}

}  // namespace

TEST_CASE("a config.json of transformers is taken with its own defaults, or refused by key",
          "[config]") {
  const auto of = [](const std::string& text) {
    return config::model_of_hugging_face(config::model_kinds(), *parse_json(text));
  };
  const auto llama = of(tiny_llama());
  REQUIRE(llama.ok());
  CHECK(llama->find("norm_eps")->number() == 1e-6);
  CHECK(llama->find("rope_theta")->number() == 10000);
  CHECK(*llama->find("kv_heads")->integer() == 1);
  const auto far =
      of(tiny_llama(R"({"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})"));
  REQUIRE(far.ok());
  CHECK(far->find("rope_theta")->number() == 500000);
  const auto gpt2 = of(R"({"model_type": "gpt2", "n_layer": 2, "n_inner": 3072})");
  REQUIRE(gpt2.ok());
  CHECK(*gpt2->find("vocab")->integer() == 50257);
  CHECK(*gpt2->find("width")->integer() == 768);

  const auto refused = [&](const std::string& text, const std::string& wanted) {
    const auto model = of(text);
    INFO(text);
    REQUIRE(!model.ok());
    INFO(model.error().text);
    CHECK(model.error().text.find(wanted) != std::string::npos);
  };
  refused(
      tiny_llama(R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "dynamic"}})"),
      R"(rope_parameters.rope_type: found "dynamic", wanted one of default, linear, llama3, yarn)");
  refused(tiny_llama(R"({"rope_scaling": {"type": "linear", "factor": 2.0}})"),
          R"(rope_parameters.rope_type: found "default", wanted that of rope_scaling.type)");
  refused(tiny_llama(R"({"rope_parameters": {"rope_theta": 1e4, "mscale": 1}})"),
          "rope_parameters.mscale: found 1, wanted no such key");
  refused(tiny_llama(R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "llama3"}})"),
          "rope_parameters.factor: found nothing, wanted the value of model.rope_factor");
  refused(tiny_llama(R"({"rope_parameters": 3})"), "rope_parameters: found 3, wanted a table");
  refused(tiny_llama(R"({"rope_theta": 5e5})"), "rope_parameters.rope_theta: found 10000");
  refused(tiny_llama(R"({"hidden_act": "gelu"})"), R"(hidden_act: found "gelu", wanted "silu")");
  refused(tiny_llama(R"({"attention_bias": true})"), "attention_bias: found true, wanted false");
  refused(tiny_llama(R"({"sliding_window": 4096})"),
          "sliding_window: found 4096, wanted no such key");
  refused(tiny_llama(R"({"model_type": "qwen2", "use_sliding_window": true})"),
          "use_sliding_window: found true, wanted false");
  refused(tiny_llama(R"({"model_type": "qwen3",
                         "layer_types": ["full_attention", "sliding_attention"]})"),
          R"(layer_types: found "sliding_attention", wanted "full_attention")");
  refused(tiny_llama(R"({"model_type": "falcon"})"), "model_type is \"falcon\"; gpt2, llama");
  refused(tiny_llama(R"({"quantization_config": {}})"), "quantization_config: found {}");
  refused(tiny_llama(R"({"of_the_future": 1})"), "of_the_future: found 1, wanted no such key");
  refused(R"({"model_type": "gpt2", "activation_function": "relu"})",
          R"(activation_function: found "relu", wanted "gelu_new" or "gelu_pytorch_tanh")");
  refused(R"({"model_type": "gpt2", "n_inner": 64})", "n_inner: found 64, wanted 3072");
  refused(R"({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": true})",
          "scale_attn_by_inverse_layer_idx: found true, wanted false");
}

TEST_CASE("a config.json of experts is taken, or refused by key", "[config]") {
  // The keys that Mixtral 8x7B and Qwen3 30B A3B have.
  const std::string mixtral = R"({"architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0,
    "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
    "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 32768,
    "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32000})";
  const std::string qwen = R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false,
    "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
    "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
    "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
    "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
    "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null,
    "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
    "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})";
  const auto of = [](const std::string& text, const std::string& more = "{}") {
    auto config = *parse_json(text);
    const auto others = parse_json(more);
    for (const auto& entry : *others->map()) config.set(entry.key, entry.value);
    return config::model_of_hugging_face(config::model_kinds(), config);
  };
  const auto eight = of(mixtral);
  REQUIRE(eight.ok());
  CHECK(*eight->find("experts")->integer() == 8);
  CHECK(*eight->find("window")->integer() == 0);
  CHECK(*eight->find("balanced")->boolean() == false);
  const auto many = of(qwen);
  REQUIRE(many.ok());
  CHECK(*many->find("experts")->integer() == 128);
  CHECK(*many->find("renormalise")->boolean());
  CHECK(*of(qwen, R"({"decoder_sparse_step": 2})")->find("sparse_step")->integer() == 2);

  const auto refused = [&](const std::string& text, const std::string& more,
                           const std::string& wanted) {
    const auto model = of(text, more);
    REQUIRE(!model.ok());
    INFO(model.error().text);
    CHECK(model.error().text.find(wanted) != std::string::npos);
  };
  refused(mixtral, R"({"router_jitter_noise": 0.1})", "router_jitter_noise: found 0.1, wanted 0");
  refused(mixtral, R"({"num_experts": 4})", "num_experts: found 4, wanted that of");
  refused(mixtral, R"({"shared_expert_intermediate_size": 64})", "wanted no such key");
  refused(qwen, R"({"mlp_only_layers": [0, 3]})", "mlp_only_layers: found 0, wanted null");
  refused(qwen, R"({"use_sliding_window": true})", "use_sliding_window: found true, wanted false");
}

TEST_CASE("a config.json says which of a kind's options a type has", "[config]") {
  const auto of = [](const std::string& text, const std::vector<std::string>& accepted = {}) {
    const auto model =
        config::model_of_hugging_face(config::model_kinds(), *parse_json(text), accepted);
    INFO((model.ok() ? "" : model.error().text));
    REQUIRE(model.ok());
    return *model;
  };
  // A head that is as wide as usual leaves the recipe as it was before there was the option.
  CHECK(*of(tiny_llama()).find("head_width")->integer() == 0);
  CHECK(*of(tiny_llama(R"({"head_dim": 16})")).find("head_width")->integer() == 16);
  const auto mistral = of(tiny_llama(R"({"model_type": "mistral", "sliding_window": 4096})"));
  CHECK(*mistral.find("window")->integer() == 4096);
  const auto whole = of(tiny_llama(R"({"model_type": "mistral", "sliding_window": null})"));
  CHECK(*whole.find("window")->integer() == 0);
  CHECK(*of(tiny_llama(R"({"model_type": "qwen2"})")).find("qkv_bias")->boolean());
  CHECK(*of(tiny_llama(R"({"model_type": "qwen3"})")).find("qk_norm")->boolean());
  const auto scaled =
      of(tiny_llama(R"({"rope_parameters": null, "rope_theta": 5e5, "rope_scaling": {
      "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 4096}})"));
  CHECK(*scaled.find("rope_type")->text() == "llama3");
  CHECK(scaled.find("rope_factor")->number() == 8);
  CHECK(*scaled.find("rope_context")->integer() == 4096);
  CHECK(of(tiny_llama(R"({"rope_parameters": {"rope_theta": 500000.0}, "rope_theta": 500000})"))
            .find("rope_theta")
            ->number() == 500000);
  const auto accepted =
      of(tiny_llama(R"({"mlp_bias": true, "new": 1, "rope_parameters": {"x": 2}})"),
         {"mlp_bias", "new", "rope_parameters.x"});
  CHECK(accepted.find("rope_theta")->number() == 10000);
}

TEST_CASE("a model is written as the type that computes the same", "[config]") {
  const auto written = [](const std::string& options) {
    auto model = *parse_json(options);
    model.set("kind", "llama");
    for (const char* key : {"vocab", "context", "width", "layers", "heads"}) model.set(key, 8);
    const auto config = config::hugging_face_of(config::model_kinds(), model);
    // It reads back what it says beside our own table.
    auto foreign = config;
    std::erase_if(*foreign.map(), [](const auto& entry) { return entry.key == "troupe"; });
    const auto again = config::model_of_hugging_face(config::model_kinds(), foreign);
    INFO(to_json(foreign));
    INFO((again.ok() ? "" : again.error().text));
    REQUIRE(again.ok());
    for (const auto& entry : *model.map())
      CHECK(to_json(*again->find(entry.key)) == to_json(entry.value));
    CHECK(config.find("troupe"));
    return foreign;
  };
  const auto type = [](const Value& config) { return *config.find("model_type")->text(); };
  const auto llama = written("{}");
  CHECK(type(llama) == "llama");
  CHECK(*llama.find("num_key_value_heads")->integer() == 8);
  CHECK(*llama.find("head_dim")->integer() == 1);
  CHECK(!llama.find("sliding_window"));
  CHECK(!llama.find("rope_scaling"));
  CHECK(type(written(R"({"window": 4})")) == "mistral");
  CHECK(type(written(R"({"qkv_bias": true})")) == "qwen2");
  const auto qwen3 = written(R"({"qk_norm": true, "head_width": 6})");
  CHECK(type(qwen3) == "qwen3");
  CHECK((*qwen3.find("architectures")->list())[0] == Value("Qwen3ForCausalLM"));
  CHECK(*qwen3.find("head_dim")->integer() == 6);
  CHECK(to_json(*written(R"({"rope_type": "linear", "rope_factor": 2.0})").find("rope_scaling")) ==
        R"({"rope_type":"linear","factor":2})");
  const auto llama3 = written(R"({"rope_type": "llama3", "rope_factor": 8.0})");
  CHECK(to_json(*llama3.find("rope_scaling")->find("low_freq_factor")) == "1");
  CHECK(*llama3.find("rope_scaling")->find("original_max_position_embeddings")->integer() == 8192);
  CHECK(
      config::config_json_text(written(R"({"rope_theta": 12})")).find("\"rope_theta\": 12.0,\n") !=
      std::string::npos);
  const auto none = config::hugging_face_of(
      config::model_kinds(),
      *parse_json(R"({"kind": "llama", "qkv_bias": true, "qk_norm": true})"));
  CHECK(type(none) == "troupe-llama");
}

namespace {

/// The config.json that timm 1.0.31 writes, with another text in place of one.
Result<Value> of_timm(const std::string& right = {}, const std::string& wrong = {}) {
  std::string text = R"({"architecture": "vit_small_patch16_224", "num_classes": 10,
    "num_features": 96, "global_pool": "token",
    "model_args": {"img_size": [32, 32], "in_chans": 1, "embed_dim": 96, "num_heads": 3},
    "pretrained_cfg": {"input_size": [1, 32, 32], "mean": [0.5], "std": [0.5]}})";
  if (!right.empty()) {
    const auto at = text.find(right);
    REQUIRE(at != text.npos);
    text.replace(at, right.size(), wrong);
  }
  return config::model_of_hugging_face(config::model_kinds(), *parse_json(text));
}

}  // namespace

TEST_CASE("a config.json of timm names a preset, and says what differs from it", "[config]") {
  const auto model = of_timm();
  INFO((model.ok() ? "" : model.error().text));
  REQUIRE(model.ok());
  CHECK(*model->find("kind")->text() == "vit");
  const std::pair<const char*, std::int64_t> wanted[] = {
      {"image", 32},  {"patch", 16}, {"channels", 1}, {"width", 96},
      {"layers", 12}, {"heads", 3},  {"classes", 10}};
  for (const auto& [name, size] : wanted) {
    CAPTURE(name);
    CHECK(*model->find(name)->integer() == size);
  }
  const auto resnet = of_timm(
      R"("vit_small_patch16_224", "num_classes": 10,
    "num_features": 96, "global_pool": "token",
    "model_args": {"img_size": [32, 32], "in_chans": 1, "embed_dim": 96, "num_heads": 3})",
      R"("wide_resnet50_2", "num_classes": 10, "num_features": 2048, "global_pool": "avg")");
  INFO((resnet.ok() ? "" : resnet.error().text));
  REQUIRE(resnet.ok());
  CHECK(*resnet->find("kind")->text() == "resnet");
  CHECK(*resnet->find("base_width")->integer() == 128);
  const auto resnext = of_timm(
      R"("vit_small_patch16_224", "num_classes": 10,
    "num_features": 96, "global_pool": "token",
    "model_args": {"img_size": [32, 32], "in_chans": 1, "embed_dim": 96, "num_heads": 3})",
      R"("resnext50_32x4d", "num_classes": 10, "num_features": 2048, "global_pool": "avg")");
  INFO((resnext.ok() ? "" : resnext.error().text));
  REQUIRE(resnext.ok());
  CHECK(*resnext->find("groups")->integer() == 32);
  CHECK(*resnext->find("base_width")->integer() == 4);

  const auto refused = [](const std::string& right, const std::string& wrong,
                          const std::string& wanted) {
    CAPTURE(wrong);
    const auto other = of_timm(right, wrong);
    REQUIRE(!other.ok());
    INFO(other.error().text);
    CHECK(other.error().text.find(wanted) != std::string::npos);
  };
  refused("vit_small_patch16_224", "beit_base_patch16_224",
          "architecture is \"beit_base_patch16_224\"; ");
  refused("\"token\"", "\"avg\"", "global_pool: found \"avg\", wanted \"token\"");
  refused("[32, 32]", "[32, 48]", "model_args.img_size: found [32,48], wanted equal sizes");
  refused("\"num_features\": 96", "\"num_features\": 97", "num_features: found 97, wanted 96");
  refused("\"num_heads\": 3", "\"num_heads\": 3, \"reg_tokens\": 4",
          "model_args.reg_tokens: found 4, wanted no such key");
  refused("\"num_heads\": 3", "\"num_heads\": 3, \"mlp_ratio\": 2",
          "model_args.mlp_ratio: found 2, wanted 4");
}

TEST_CASE("a network for images is written as the preset of timm that is nearest", "[config]") {
  const auto written = [](const std::string& options) {
    auto config = config::hugging_face_of(config::model_kinds(), *parse_json(options));
    std::erase_if(*config.map(), [](const auto& entry) { return entry.key == "troupe"; });
    return to_json(config);
  };
  CHECK(written(R"({"kind": "vit", "image": 384, "patch": 16, "channels": 3, "width": 768,
    "layers": 12, "heads": 12, "classes": 5, "dropout": 0.1})") ==
        R"({"architecture":"vit_base_patch16_384","num_classes":5,"pretrained_cfg":{}})");
  CHECK(written(R"({"kind": "vit", "image": 32, "patch": 4, "channels": 1, "width": 192,
    "layers": 12, "heads": 3, "classes": 10})") ==
        R"({"architecture":"vit_tiny_patch16_224","num_classes":10,"model_args":{"in_chans":1,)"
        R"("img_size":32,"patch_size":4},"pretrained_cfg":{}})");
  CHECK(written(R"({"kind": "resnet", "widths": [64, 128, 256, 512], "blocks": [3, 4, 6, 3],
    "stem": "imagenet", "block": "bottleneck", "base_width": 128, "channels": 3, "classes": 9})") ==
        R"({"architecture":"wide_resnet50_2","num_classes":9,"pretrained_cfg":{}})");
  // timm has no network with such widths.
  CHECK(written(R"({"kind": "resnet", "widths": [16, 32], "blocks": [1, 1], "channels": 1,
    "classes": 10})") == R"({"model_type":"troupe-resnet"})");
}

TEST_CASE("families of Hugging Face say what their models have", "[config]") {
  const auto of = [](const std::string& type, const std::string& keys) {
    auto config = *parse_json(keys);
    config.set("model_type", type);
    return config::model_of_hugging_face(config::model_kinds(), config);
  };
  const auto text_of = [](const Result<Value>& model, const char* option) {
    INFO((model.ok() ? "" : model.error().text));
    REQUIRE(model.ok());
    return to_json(*model->find(option));
  };
  const auto pythia = of("gpt_neox", R"({"rotary_pct": 0.25, "rotary_emb_base": 10000})");
  CHECK(text_of(pythia, "rotary") == "0.25");
  CHECK(text_of(of("gpt_neox", R"({"hidden_act": "gelu_new"})"), "activation") == "\"gelu_tanh\"");
  CHECK(text_of(of("gemma2", R"({"attn_logit_softcapping": null})"), "score_cap") == "0");
  CHECK(text_of(of("gemma2", "{}"), "post_norms") == "true");
  CHECK(text_of(of("gemma", "{}"), "post_norms") == "false");
  const auto refused = [&](const Result<Value>& model, const std::string& wanted) {
    REQUIRE(!model.ok());
    INFO(model.error().text);
    CHECK(model.error().text.find(wanted) != std::string::npos);
  };
  refused(of("gpt_neox", R"({"hidden_act": "relu"})"),
          R"(hidden_act: found "relu", wanted one of)");
  refused(of("gpt_neox", R"({"attention_bias": false})"), "attention_bias: found false");
  refused(of("gptj", R"({"rotary_dim": null})"), "rotary_dim: found nothing");
  refused(of("phi", R"({"qk_layernorm": true})"), "qk_layernorm: found true, wanted false");
  refused(of("phi", R"({"rope_parameters": {"rope_type": "longrope"}})"),
          R"(rope_parameters.rope_type: found "longrope", wanted "default")");
  refused(of("gemma2", R"({"layer_types": ["full_attention"]})"),
          R"(layer_types: found "full_attention", wanted "sliding_attention")");
  refused(of("gemma", R"({"hidden_act": "gelu"})"), R"(wanted "gelu_pytorch_tanh")");
}
