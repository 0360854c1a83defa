#pragma once

#include <string>

namespace troupe::tests {

/// A U-Net that names classes: each level skips to its level on the way up.
inline const std::string own_unet =
    R"(model = { format = 1, name = "unet", help = "A U-Net, and a head that names classes." }
options.size = { least = 4, default = 28, help = "Height and width of an image." }
options.width = { least = 1, default = 8, help = "Channels of the first level." }
options.levels = { least = 1, most = 4, default = 2, help = "Levels on each way." }
options.dropout = { type = "number", least = 0, most = 0.9, default = 0.1, help = "In the head." }
require = [["size % 2 ** levels == 0", "each level halves the size"]]
input.image = { type = "f32", shape = [1, "size", "size"] }
loss = { kind = "cross_entropy", classes = 10 }
every.norm = { kind = "batch" }
[[part]]
name = "down{i}"
repeat = { i = "levels" }
body = [{ conv = "conv", out = "width * 2 ** i", kernel = 3 }, { norm = "bn" }, "relu",
  { keep = "skip{i}" }, { pool = "max", kernel = 2 }]
[[part]]
name = "bottom"
unit = "own"
body = [{ conv = "conv", out = "2 * given", kernel = 3 }, { norm = "bn" }, "relu"]
[[part]]
name = "up{i}"
repeat = { i = "levels" }
let = { level = "levels - 1 - i" }
body = [{ upsample = 2 }, { concat = "skip{level}" },
  { conv = "conv", out = "width * 2 ** level", kernel = 3 }, { norm = "bn" }, "relu"]
[[part]]
body = [{ pool = "mean" }, { dropout = "dropout" }, { linear = "head", out = 10 }]
)";

/// A U-Net that says for each pixel whether it is ink.
inline const std::string own_segmenter =
    R"(model = { format = 1, name = "segmenter", help = "A U-Net that marks the ink of an image." }
options.size = { least = 4, default = 28, help = "Height and width of an image." }
options.width = { least = 1, default = 8, help = "Channels of the first level." }
options.levels = { least = 1, most = 4, default = 2, help = "Levels on each way." }
options.groups = { least = 1, default = 1, help = "Groups of channels at the bottom." }
options.dropout = { type = "number", least = 0, most = 0.9, default = 0.0, help = "There." }
require = [["size % 2 ** levels == 0", "each level halves the size"]]
input.image = { type = "f32", shape = [1, "size", "size"] }
loss = { kind = "binary" }
every.norm = { kind = "batch" }
[[part]]
name = "down{i}"
repeat = { i = "levels" }
body = [{ conv = "conv", out = "width * 2 ** i", kernel = 3 }, { norm = "bn" }, "relu",
  { keep = "skip{i}" }, { pool = "max", kernel = 2 }]
[[part]]
name = "bottom"
unit = "own"
body = [{ conv = "conv", out = "2 * given", kernel = 3, groups = "groups" }, { norm = "bn" },
  "relu", { dropout = "dropout" }]
[[part]]
name = "up{i}"
repeat = { i = "levels" }
let = { level = "levels - 1 - i" }
body = [{ upsample = 2 }, { concat = "skip{level}" },
  { conv = "conv", out = "width * 2 ** level", kernel = 3 }, { norm = "bn" }, "relu"]
[[part]]
body = [{ conv = "head", out = 1, kernel = 1 }]
)";

/// Rows of numbers to rows of numbers. The last step saves the output that the loss reads.
inline const std::string own_gauge =
    R"(model = { format = 1, name = "gauge", help = "Three numbers that are never negative." }
options.depth = { least = 1, default = 2, help = "Layers between the first and the last." }
options.dropout = { type = "number", least = 0, most = 0.9, default = 0.1, help = "Of rows." }
input.row = { type = "f32", shape = [6] }
loss = { kind = "squared" }
part = [
  { name = "in", unit = "own", body = [{ linear = "one", out = 8 }, "relu"] },
  { name = "b{i}", repeat = { i = "depth" }, body = [
      { residual = [{ linear = "one", out = 8 }, "relu"] }, { dropout = "dropout" }] },
  { name = "out", unit = "own", body = [{ linear = "head", out = 3 }, "relu"] }]
)";

/// Rows that are read several times, by each kind of step that reads a kept value.
inline const std::string own_braid =
    R"(model = { format = 1, name = "braid", help = "Rows that many later steps read." }
options.dropout = { type = "number", least = 0, most = 0.9, default = 0.1, help = "Of rows." }
options.depth = { least = 1, default = 2, help = "Parts that read a value twice each." }
input.row = { type = "f32", shape = [6] }
loss = { kind = "cross_entropy", classes = 5 }
part = [
  { name = "a", unit = "own", body = [{ keep = "input" }, { linear = "one", out = 8 }, "relu",
      { keep = "x" }] },
  { name = "b{i}", repeat = { i = "depth" }, body = [{ linear = "one", out = 8 }, "relu", { add = "x" },
      { residual = [{ linear = "two", out = 8 }, { add = "x" }, "relu"] }] },
  { name = "c", unit = "own", body = [{ keep = "y" }, { take = "x" }, { linear = "one", out = 8 },
      { dropout = "dropout" }] },
  { name = "d", unit = "own", body = [{ concat = "y" }, { concat = "x" },
      { linear = "one", out = 8 }, { concat = "input" }, "relu"] },
  { body = [{ linear = "head", out = 5 }] }]
)";

/// Inputs behind the first one: tokens that are read at once, tokens with which the stream begins
/// anew behind a cut, and numbers that the last stage reads.
inline const std::string own_pair =
    R"toml(model = { format = 1, name = "pair", help = "Four inputs, and a stream that begins anew." }
options.dropout = { type = "number", least = 0, most = 0.9, default = 0.1, help = "Of rows." }
options.depth = { least = 1, default = 2, help = "Parts between those that read inputs." }
input.source = { type = "i32", shape = [6], below = 13 }
input.marks = { type = "i32", shape = [6], below = 3 }
input.others = { type = "i32", shape = [6], below = 11 }
input.sizes = { type = "f32", shape = [6, 4] }
loss = { kind = "cross_entropy", classes = 13 }
part = [
  { name = "a", unit = "own", body = [{ embed = "/words", of = "source", rows = 13, width = 8 },
      { keep = "words" }, { embed = "marks", of = "marks", rows = 3, width = 8 }, { add = "words" },
      { dropout = "dropout" }] },
  { name = "b{i}", repeat = { i = "depth" }, body = [
      { residual = [{ norm = "norm", kind = "layer" }, { linear = "one", out = 8 }, "relu"] }] },
  { name = "c", unit = "own", body = [{ keep = "memory" },
      { embed = "others", of = "others", rows = 12, width = 8 }, { dropout = "dropout" },
      { add = "memory" }, { linear = "one", out = 8 }, "relu"] },
  { name = "d", unit = "own", body = [{ linear = "one", out = 8 }, { add = "memory" },
      { concat = "sizes" }, { linear = "two", out = 8 }] },
  { body = [{ linear = "/words", out = 13, bias = false, init = "normal(1)", place = "edge" }] }]
)toml";

}  // namespace troupe::tests
