#pragma once

#include <string>

namespace troupe::tests {

/// Four convolutions with a residual block each, and a head: twelve lines.
inline const std::string own_tiny =
    R"(model = { format = 1, name = "tiny", help = "Convolutions with residual blocks, and a head." }
options.width = { least = 1, default = 32, help = "Channels of the first block." }
input.image = { type = "f32", shape = [1, 28, 28] }
loss = { kind = "cross_entropy", classes = 10 }
every.norm = { kind = "batch" }
[[part]]
name = "block{i}"
repeat = { i = 4 }
body = [{ conv = "conv", out = "width * 2 ** i", kernel = 3, stride = 2 }, { norm = "bn" }, "relu",
  { residual = [{ conv = "inner", out = "given", kernel = 3 }, { norm = "inner_bn" }, "relu"] }]
[[part]]
body = [{ pool = "mean" }, { dropout = 0.1 }, { linear = "head", out = 10 }]
)";

}  // namespace troupe::tests
