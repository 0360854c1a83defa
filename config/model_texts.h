#pragma once

#include <string_view>

namespace troupe::config {

// The files of config/models/, as they are, and their SHA-256 in hexadecimal digits.

std::string_view mlp_toml();
std::string_view mlp_toml_sha256();
std::string_view gpt2_toml();
std::string_view gpt2_toml_sha256();
std::string_view llama_toml();
std::string_view llama_toml_sha256();
std::string_view vit_toml();
std::string_view vit_toml_sha256();
std::string_view resnet_toml();
std::string_view resnet_toml_sha256();
std::string_view gpt_neox_toml();
std::string_view gpt_neox_toml_sha256();
std::string_view gptj_toml();
std::string_view gptj_toml_sha256();
std::string_view phi_toml();
std::string_view phi_toml_sha256();
std::string_view gemma_toml();
std::string_view gemma_toml_sha256();
std::string_view mixtral_toml();
std::string_view mixtral_toml_sha256();
std::string_view qwen3_moe_toml();
std::string_view qwen3_moe_toml_sha256();
std::string_view bert_toml();
std::string_view bert_toml_sha256();
std::string_view t5_toml();
std::string_view t5_toml_sha256();

}  // namespace troupe::config
