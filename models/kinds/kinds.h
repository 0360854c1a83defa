#pragma once

#include "models/kinds/registry.h"

namespace troupe::models {

/// One for each file that holds a kind of model.
ModelKind mlp();
ModelKind gpt2();
ModelKind llama();
ModelKind vit();
ModelKind resnet();

}  // namespace troupe::models
