#pragma once

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"
#include "cluster/cluster.h"

namespace troupe::tests {

using Settings = std::vector<std::string>;

inline Settings operator+(Settings some, const Settings& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

/// A model and data that it can learn.
struct Kind {
  std::string model;
  std::string data;
};

/// Small models, since a core simulates a GPU some hundred times slower than it computes.
inline const std::vector<Kind> kinds = {
    {"kind = \"mlp\"\ndims = [4, 16, 16, 3]", "made:gaussians?dims=4&classes=3"},
    {"kind = \"gpt2\"\nvocab = 32\ncontext = 16\nwidth = 16\nheads = 2\nlayers = 4\ndropout = 0.1",
     "made:markov?states=32"},
    {"kind = \"llama\"\nvocab = 32\ncontext = 16\nwidth = 16\nheads = 2\nkv_heads = 1\nlayers = "
     "2\nffn = 32",
     "made:markov?states=32"},
    {"kind = \"vit\"\nimage = 16\npatch = 8\nchannels = 1\nwidth = 16\nheads = 2\nlayers = "
     "2\nclasses = 10",
     "made:glyphs?size=16"},
    {"kind = \"resnet\"\nchannels = 1\nwidths = [8, 16]\nblocks = [1, 1]\nclasses = 10",
     "made:glyphs?size=16"}};
inline const Kind& gpt2 = kinds[1];

inline std::string configuration(const Kind& kind) {
  return "name = \"run\"\nseed = 5\n[model]\n" + kind.model + "\n[data]\ntrain = \"" + kind.data +
         "\"\n[batch]\nglobal = 8\nmicro = 2\n[optimizer]\nkind = \"adamw\"\nlr = 1e-3\nclip_norm "
         "= "
         "1.0\n[precision]\ncompute = \"fp32\"\n[pipeline]\nstages = 1\n[train]\nsteps = 3\n";
}

/// Trains `run.toml`. Returns the digest of the final weights.
inline std::string train(const Workplace& here, const Settings& settings,
                         const std::vector<std::string>& more = {}) {
  const auto words = with({"train", "run.toml", "-q"}, settings) + more;
  const Ended ended = troupe(here, words);
  CAPTURE(words);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return digest(here, "run");
}

inline const Settings on_gpu = {"train.device=cuda"};

/// Sets an environment variable for processes that start during its life.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

/// The records that processes wrote to CUDA_ON_CORES_TALE (tale.cpp), in any order.
using Lines = std::multiset<std::string>;
inline Lines tale_at(const std::string& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  return lines;
}

}  // namespace troupe::tests
