#pragma once

#include "models/kinds/registry.h"

namespace troupe::models {

/// The kinds of models. Each has a source file of its name in this folder.
BuiltInKind mlp();
BuiltInKind gpt2();
BuiltInKind llama();
BuiltInKind vit();
BuiltInKind resnet();

}  // namespace troupe::models
