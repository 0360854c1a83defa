#pragma once

#include "models/kinds/registry.h"

namespace troupe::models {

/// The kinds of models. Each has a source file of its name in this folder.
ModelKind mlp();
ModelKind gpt2();
ModelKind llama();
ModelKind vit();
ModelKind resnet();

}  // namespace troupe::models
