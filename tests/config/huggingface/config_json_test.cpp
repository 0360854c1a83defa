#include "config/huggingface/config_json.h"

#include <string>

#include "catch.h"
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
    return config::model_of_hugging_face(*parse_json(text));
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
  refused(tiny_llama(R"({"rope_parameters": {"rope_theta": 1e4, "rope_type": "llama3"}})"),
          R"(rope_parameters.rope_type: found "llama3", wanted "default")");
  refused(tiny_llama(R"({"rope_scaling": {"type": "linear", "factor": 2.0}})"),
          R"(rope_scaling: found {"type":"linear","factor":2)");
  refused(tiny_llama(R"({"rope_theta": 5e5})"), "rope_parameters.rope_theta: found 10000");
  refused(tiny_llama(R"({"hidden_act": "gelu"})"), R"(hidden_act: found "gelu", wanted "silu")");
  refused(tiny_llama(R"({"attention_bias": true})"), "attention_bias: found true, wanted false");
  refused(tiny_llama(R"({"head_dim": 16})"), "head_dim: found 16, wanted 8");
  refused(tiny_llama(R"({"sliding_window": 4096})"), "sliding_window: found 4096, wanted null");
  refused(tiny_llama(R"({"quantization_config": {}})"), "quantization_config: found {}");
  refused(tiny_llama(R"({"of_the_future": 1})"), "of_the_future: found 1, wanted no such key");
  refused(R"({"model_type": "gpt2", "activation_function": "relu"})",
          R"(activation_function: found "relu", wanted "gelu_new" or "gelu_pytorch_tanh")");
  refused(R"({"model_type": "gpt2", "n_inner": 64})", "n_inner: found 64, wanted 3072");
  refused(R"({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": true})",
          "scale_attn_by_inverse_layer_idx: found true, wanted false");
}
