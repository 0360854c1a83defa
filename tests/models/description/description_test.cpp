#include <string>
#include <variant>

#include "catch.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "models/description/model_kind.h"
#include "tests/own_unet.h"

using namespace troupe;
using namespace troupe::models;

namespace {

const std::string header = R"(model = { format = 1, name = "mine", help = "Mine." }
options.width = { least = 1, most = 64, default = 4, help = "Width." }
loss = { kind = "cross_entropy", classes = 3 }
)";
const std::string images = header + R"(input.image = { type = "f32", shape = [1, 8, 8] }
)";
const std::string tokens = header + R"(input.tokens = { type = "i32", shape = [6], below = 9 }
)";
const std::string rows = header + R"(input.row = { type = "f32", shape = [5] }
)";

std::variant<Model, Fault> expanded(const std::string& text, const Value& given = {},
                                    Cuts cuts = Cuts::layers) {
  const auto tree = config::parse_toml(text);
  if (!tree) FAIL(tree.error().text);
  auto kind = ModelKind::read(*tree);
  if (auto* fault = std::get_if<Fault>(&kind)) return *fault;
  const auto& read = std::get<ModelKind>(kind);
  const auto options = complete(read.options(), given.is_null() ? Value(Value::Map{}) : given);
  if (!options) FAIL(options.error().text);
  return read.expand(*options, cuts);
}

std::string fault_in(const std::string& text) {
  const auto made = expanded(text);
  const auto* fault = std::get_if<Fault>(&made);
  return fault ? error_of(*fault).text : "";
}

/// The fault of a description whose one part has this body.
std::string fault_of_body(const std::string& text, const std::string& body) {
  return fault_in(text + "part = [{ body = [" + body + "] }]");
}

std::string names_of(const Model& model) {
  std::string all;
  for (const auto& unit : model.units) {
    all += unit.name + ":";
    for (const auto& parameter : unit.layer->parameters())
      all += " " + parameter.name + to_string(parameter.shape);
    all += "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("units begin with repetitions, own units and cuts", "[models][description]") {
  const auto made = expanded(rows + R"(
[[part]]
body = [{ linear = "a", out = 4, bias = false }, "cut", { linear = "/b", out = 4, bias = false }]
[[part]]
name = "block{i}{k}"
repeat = { i = 2, k = "i + 1" }
let = { size = "width + i" }
body = [{ linear = ".", out = "size", bias = false }, "cut", "relu"]
[[part]]
name = "head"
unit = "own"
body = [{ linear = "c", out = 3, bias = false }]
[[part]]
body = ["relu"]
)");
  if (const auto* fault = std::get_if<Fault>(&made)) FAIL(error_of(*fault).text);
  CHECK(names_of(std::get<Model>(made)) ==
        "mine: a.weight[4, 5]\n"
        "block00: b.weight[4, 4] block00.weight[4, 4]\n"
        "block00/2:\n"
        "block10: block10.weight[5, 4]\n"
        "block10/2:\n"
        "block11: block11.weight[5, 5]\n"
        "block11/2:\n"
        "head: head.c.weight[3, 5]\n");
}

TEST_CASE("steps behind the last cut are a unit", "[models][description]") {
  const auto made = expanded(rows + R"(part = [{ body = [
  { linear = "a", out = 4 }, "cut", { linear = "b", out = 3 }, "cut", "relu"] }]
)");
  if (const auto* fault = std::get_if<Fault>(&made)) FAIL(error_of(*fault).text);
  CHECK(names_of(std::get<Model>(made)) ==
        "mine: a.weight[4, 5] a.bias[4]\nmine/2: b.weight[3, 4] b.bias[3]\nmine/3:\n");
}

TEST_CASE("units of sublayers also begin with residuals behind the first",
          "[models][description]") {
  const std::string text = rows + R"(
every.linear = { out = "given", bias = false }
[[part]]
body = [{ linear = "a", out = 4 }]
[[part]]
name = "block{i}"
repeat = { i = 2 }
body = [{ residual = [{ linear = "b" }] }, { residual = [{ linear = "c" }, { residual = [{ linear = "d" }] }] }, "relu"]
[[part]]
name = "last"
body = [{ residual = [{ linear = "e" }] }, "cut", "relu", { residual = [{ linear = "f" }] }, { linear = "g", out = 3 }]
)";
  const auto units_of = [&](Cuts cuts) {
    const auto made = expanded(text, {}, cuts);
    if (const auto* fault = std::get_if<Fault>(&made)) FAIL(error_of(*fault).text);
    return names_of(std::get<Model>(made));
  };
  CHECK(units_of(Cuts::sublayers) ==
        "block0: a.weight[4, 5] block0.b.weight[4, 4]\n"
        "block0/2: block0.c.weight[4, 4] block0.d.weight[4, 4]\n"
        "block1: block1.b.weight[4, 4]\n"
        "block1/2: block1.c.weight[4, 4] block1.d.weight[4, 4]\n"
        "last: last.e.weight[4, 4]\n"
        "last/2: last.f.weight[4, 4] last.g.weight[3, 4]\n");
  CHECK(units_of(Cuts::layers) ==
        "block0: a.weight[4, 5] block0.b.weight[4, 4] block0.c.weight[4, 4] block0.d.weight[4, 4]\n"
        "block1: block1.b.weight[4, 4] block1.c.weight[4, 4] block1.d.weight[4, 4]\n"
        "last: last.e.weight[4, 4]\n"
        "last/2: last.f.weight[4, 4] last.g.weight[3, 4]\n");
}

TEST_CASE("every, when and groups of steps", "[models][description]") {
  const auto made = expanded(rows + R"toml(
every.any = { init = "normal(0.5)" }
every.linear = { bias = false, out = "width" }
part = [{ body = [
  { linear = "a" }, { linear = "b", when = "width > 4" },
  { when = "given == 4", do = ["relu", { linear = "c", bias = true }] },
  { linear = "d", out = 3, init = "none" }] }]
)toml");
  if (const auto* fault = std::get_if<Fault>(&made)) FAIL(error_of(*fault).text);
  const auto& model = std::get<Model>(made);
  CHECK(names_of(model) == "mine: a.weight[4, 5] c.weight[4, 4] c.bias[4] d.weight[3, 4]\n");
  const auto parameters = model.units[0].layer->parameters();
  CHECK(parameters[0].init.kind == Init::Kind::normal);
  CHECK(parameters[0].init.scale == 0.5f);
  CHECK(parameters[2].init.kind == Init::Kind::zeros);
  CHECK(parameters[3].init.kind == Init::Kind::uniform);
  CHECK(parameters[3].init.scale == 0.5f);  // 1 / sqrt(4)
}

TEST_CASE("a description that is no description is refused", "[models][description]") {
  const std::string body = "part = [{ body = [{ linear = 'a', out = 3 }] }]\n";
  CHECK(fault_in(rows + body) == "");
  CHECK(fault_in("x = 1") ==
        "1:5: no description has a key 'x' here; there are model, common, fallback, options, "
        "preset, let, divides, require, input, loss, every, part, huggingface");
  CHECK(fault_in("model = 1")
            .ends_with("'input' is missing; a description has model, input, loss "
                       "and part"));
  CHECK(fault_in(rows + "common = ['wdith']\n" + body).ends_with("declare it in options"));
  CHECK(fault_in(rows + "options.given = { help = 'x' }\n" + body)
            .find("cannot be the name of an option") != std::string::npos);
  CHECK(fault_in(rows + "options.depth = { default = 'x', help = 'y' }\n" + body)
            .ends_with("the default does not fit the type and the bounds"));
  CHECK(fault_in(rows + "divides = [['width', 'none']]\n" + body)
            .ends_with("with the names of two integer options or values"));
  CHECK(fault_in(rows + "divides = [['width', 'width', '1 +']]\n" + body)
            .ends_with("an operand is missing"));
  CHECK(fault_in(rows + "require = [['width == 5', 'width is {width}']]\n" + body) == "width is 4");
  CHECK(fault_in(rows + "part = []").ends_with("part is a list of tables with a body each"));
  CHECK(fault_in(rows + "part = [{ body = [] }]").ends_with("the model has no layers"));
  CHECK(fault_in(rows + "input.more = { type = 'f32', shape = [1] }\n" + body)
            .ends_with("no step reads the input 'more'"));
  CHECK(fault_in(rows + "part = [{ repeat = { i = -1 }, body = ['relu'] }]")
            .ends_with("a part is repeated 0 to 65536 times, and not -1"));
}

TEST_CASE("a step that does not fit is refused with its place", "[models][description]") {
  CHECK(fault_of_body(rows, "{ linear = 'a', out = 0 }") ==
        "5:41: out of linear is an integer from 1 to 16777216, and not 0");
  CHECK(fault_of_body(rows, "{ linear = 'a' }") ==
        "5:19: linear needs out, an integer from 1 to 16777216");
  CHECK(fault_of_body(rows, "{ linear = 'a', out = 3, heads = 2 }")
            .starts_with("5:52: linear has no option 'heads'"));
  CHECK(fault_of_body(rows, "{ linear = 'a', conv = 'b' }") ==
        "5:19: a step has one kind, and this one has 'linear' and 'conv'");
  CHECK(fault_of_body(rows, "{ linear = 'a b', out = 3 }")
            .ends_with("the name of parameters has 1 to 256 letters, digits and ._-/:"));
  CHECK(fault_of_body(rows, "{ lstm = 'a' }").starts_with("5:19: 'lstm' is no kind of step"));
  CHECK(
      fault_of_body(rows, "'linear'").ends_with("linear is written as a table: { linear = ... }"));
  CHECK(fault_of_body(rows, "{ embed = 'a', rows = 9, width = 3 }") ==
        "5:19: embed 'a' takes tokens and gets rows of numbers [5]");
  CHECK(fault_of_body(tokens, "{ embed = 'a', rows = 8, width = 3 }") ==
        "5:19: embed 'a' has 8 rows, but tokens are below 9");
  CHECK(fault_of_body(tokens,
                      "{ embed = 'a', rows = 9, width = 4 }, { attention = 'b', proj = "
                      "['c', 'd'], heads = 3 }") ==
        "5:57: attention 'b' has 3 heads, which do not divide rows of numbers [6, 4], made at 5:19 "
        "(embed 'a')");
  CHECK(fault_of_body(images, "{ conv = 'a', out = 3, kernel = 11, padding = 0 }") ==
        "5:19: conv 'a' has a kernel of 11, which is larger than images [1, 8, 8]");
  CHECK(fault_of_body(header + "input.image = { type = 'f32', shape = [1, 0, 0] }\n",
                      "{ conv = 'a', out = 3, kernel = 3, padding = 0 }")
            .ends_with("which is larger than images [1, 0, 0] can be, where 0 is any size; give "
                       "more padding"));
  CHECK(fault_of_body(tokens, "{ embed = 'a', rows = 9, width = 3 }, 'first'")
            .ends_with("the loss takes a row for each of the tokens [6] and gets rows of numbers "
                       "[3]"));
  CHECK(fault_of_body(tokens, "{ embed = 'a', rows = 9, width = 3 }")
            .ends_with("tokens are below 9, and the loss has 3 classes; both are the size of the "
                       "vocabulary"));
  CHECK(fault_of_body(images, "{ norm = 'a', kind = 'group' }") ==
        "5:19: norm 'a' needs groups, the number of groups of channels");
  CHECK(fault_of_body(images, "{ norm = 'a', kind = 'batch', groups = 1 }") ==
        "5:19: norm 'a' has groups only with kind = \"group\"");
  CHECK(fault_of_body(images, "{ norm = 'a', kind = 'group', groups = 2 }") ==
        "5:19: norm 'a' has 2 groups, which do not divide the channels of images [1, 8, 8]");
  CHECK(fault_of_body(rows, "{ norm = 'a', kind = 'group', groups = 5 }")
            .ends_with("takes images with kind = \"group\" and gets rows of numbers [5]"));
  CHECK(fault_of_body(images, "{ pool = 'least' }") ==
        "5:28: kind of pool is one of mean, max, average, and not \"least\"");
  CHECK(fault_of_body(images, "{ pool = 'max' }") ==
        "5:19: pool needs kernel, the height and width of a window");
  CHECK(fault_of_body(images, "{ pool = 'mean', kernel = 2 }") ==
        "5:19: pool takes the mean of all pixels and has no kernel; \"average\" has windows");
  CHECK(fault_of_body(images, "{ pool = 'average', kernel = 3, padding = 2 }") ==
        "5:19: pool has padding = 2; at most half of kernel = 3 leaves each window a pixel");
  CHECK(fault_of_body(images, "{ residual = [{ conv = 'a', out = 2, kernel = 3 }] }") ==
        "5:19: residual adds images [2, 8, 8] to images [1, 8, 8], made at 5:33 (conv 'a')");
  CHECK(fault_of_body(rows, "{ residual = ['cut'] }")
            .ends_with("a cut is one of the outermost steps of a part"));
  CHECK(fault_of_body(rows, "{ residual = [] }").ends_with("a residual has at least one step"));
  CHECK(fault_of_body(rows, "{ linear = 'a', out = 4, init = 'normal(-1)' }, 'relu'")
            .find("with a number of at least 0") != std::string::npos);
  CHECK(fault_of_body(rows, "{ linear = 'a', out = 4 }") ==
        "3:44: the loss takes rows of 3 classes and gets rows of numbers [4], made at 5:19 (linear "
        "'a')");
}

TEST_CASE("a mixture of experts that does not fit is refused", "[models][description]") {
  const auto fault_of_moe = [](const std::string& options) {
    return fault_of_body(rows, "{ moe = 'm', " + options + " }");
  };
  const std::string proj = "proj = ['g', 'u', 'd'], ";
  CHECK(fault_of_moe(proj + "count = 4, top = 5, hidden = 3") ==
        "5:19: moe 'm' sends a row to 5 experts (top), but has 4 (count)");
  CHECK(fault_of_moe("proj = ['u', 'd'], count = 4, top = 1, hidden = 3") ==
        "5:19: moe 'm' takes three projections of an expert (gate, up, down), and gets 2");
  CHECK(fault_of_moe(proj + "count = 4, top = 1, hidden = 3, shared_hidden = 3") ==
        "5:19: moe 'm' has shared_hidden only with shared, the name of the shared expert");
  CHECK(fault_of_moe(proj + "count = 4, top = 1, hidden = 3, router = 'a b'")
            .ends_with("router of moe is a name, and not \"a b\""));
  CHECK(fault_of_body(images, "{ moe = 'm', " + proj + "count = 4, top = 1, hidden = 3 }")
            .find("takes rows of numbers and gets images") != std::string::npos);
  CHECK(fault_in(rows + "part = [{ name = 'p{i}', repeat = { i = 30 }, body = [{ moe = 'm', " +
                 proj + "count = 4096, top = 1, hidden = 3 }] }]")
            .ends_with("a model has at most 65536 steps, and each expert counts as one"));
}

TEST_CASE("experts are no place for low-rank additions", "[models][description]") {
  Value lora;
  lora.set("rank", 2);
  lora.set("match", Value::List{"*.g"});
  Value options;
  options.set("lora", lora);
  const auto made = expanded(
      rows +
          "part = [{ body = [{ moe = 'm', proj = ['g', 'u', 'd'], count = 2, top = 1, hidden = "
          "3 }, { linear = 'a', out = 3 }] }]",
      options);
  REQUIRE(std::holds_alternative<Fault>(made));
  CHECK(error_of(std::get<Fault>(made)).text ==
        "5:19: model.lora.match matches 'm.experts.0.g.weight', but experts of a moe step have no "
        "low-rank additions; match other projections, such as those of attention");
}

TEST_CASE("a description may say what the loss ignores, and a configuration another",
          "[models][description]") {
  const auto with_loss = [](const std::string& more) {
    std::string text = rows + "part = [{ body = [{ linear = 'a', out = 3 }] }]\n";
    return text.replace(text.find("classes = 3"), 11, "classes = 3, " + more);
  };
  const auto ignored = [](const std::variant<Model, Fault>& made) {
    REQUIRE(std::holds_alternative<Model>(made));
    return std::get<Model>(made).ignore;
  };
  const auto described = with_loss("ignore = -1, smoothing = '1 / 10', z = 1e-4");
  CHECK(ignored(expanded(described)) == -1);
  CHECK_FALSE(ignored(expanded(with_loss("smoothing = 0.1"))));
  Value given, loss;
  loss.set("ignore", 2);
  given.set("loss", loss);
  CHECK(ignored(expanded(described, given)) == 2);
  CHECK(
      fault_in(with_loss("smoothing = 2")).ends_with("loss.smoothing is not a number from 0 to 1"));
  CHECK(fault_in(with_loss("ignore = 0.5"))
            .ends_with("loss.ignore is not an integer from -2147483648 to 2147483647"));
  CHECK(fault_in(with_loss("weight = 1")).find("'weight'") != std::string::npos);
}

TEST_CASE("branches may be put side by side", "[models][description]") {
  const std::string two =
      "{ parallel = [[{ conv = 'a', out = 2, kernel = 3 }], [{ conv = 'b', out = 1, kernel = 1 "
      "}]], "
      "join = 'concat' }";
  CHECK(fault_of_body(images, two + ", { pool = 'mean' }") == "");
  CHECK(fault_of_body(images, two + ", { pool = 'mean' }, { linear = 'c', out = 4 }")
            .find("gets rows of numbers [4]") != std::string::npos);
  CHECK(fault_of_body(images, two).find("gets images [3, 8, 8], made at 5:19 (parallel)") !=
        std::string::npos);
  CHECK(
      fault_of_body(images,
                    "{ parallel = [[{ conv = 'a', out = 2, kernel = 3 }], [{ conv = 'b', out = 2, "
                    "kernel = 3, stride = 2 }]], join = 'concat' }")
          .find("parallel joins images [2, 4, 4] to images [2, 8, 8]") != std::string::npos);
  CHECK(fault_of_body(rows, "{ parallel = [['relu'], [{ linear = 'a', out = 1 }]], join = 'mix' }")
            .find("join of parallel is one of add, concat, and not \"mix\"") != std::string::npos);
}

TEST_CASE("parameters are shared only if all agree", "[models][description]") {
  CHECK(fault_of_body(rows,
                      "{ linear = 'a', out = 5 }, { linear = 'a', out = 5 }, { linear = 'h', "
                      "out = 3 }") == "");
  CHECK(fault_of_body(rows, "{ linear = 'a', out = 5 }, { linear = 'a', out = 3 }")
            .find("with another shape, init, place or layout") != std::string::npos);
  CHECK(fault_of_body(rows,
                      "{ linear = 'a', out = 5 }, { linear = 'a', out = 5 }, { linear = 'a', "
                      "out = 5 }, { linear = 'h', out = 3 }") == "");
  CHECK(fault_of_body(images, "{ norm = 'a', kind = 'batch' }, { norm = 'a', kind = 'batch' }")
            .find("only embed, linear and relative biases share parameters") != std::string::npos);
}

TEST_CASE("a hostile description ends with an error and not with the machine",
          "[models][description]") {
  const std::string body = "{ linear = 'a', out = 3 }";
  CHECK(fault_in(rows + "part = [{ repeat = { i = 60000, k = 60000 }, body = [] }]")
            .ends_with("a model has at most 65536 steps"));
  CHECK(fault_in(rows + "part = [{ name = 'p{i}', repeat = { i = 5000 }, body = ['relu'] }]")
            .ends_with("a model has at most 4096 units"));
  std::string costly = "width";
  for (int i = 0; i < 120; ++i) costly += " + 1";
  CHECK(fault_in(rows + "part = [{ repeat = { i = 60000 }, let = { a = '" + costly + "', b = '" +
                 costly + "', c = '" + costly + "' }, body = [] }]")
            .ends_with("the description takes too much work to expand"));
  std::string deep;
  for (int i = 0; i < 12; ++i) deep += "{ do = [";
  std::string closed;
  for (int i = 0; i < 12; ++i) closed += "] }";
  CHECK(fault_of_body(rows, deep + body + closed).find("inside each other") != std::string::npos);
  CHECK(fault_in(rows + "let = { x = '" + std::string(300'000, ' ') + "1' }\npart = [{ body = [" +
                 body + "] }]")
            .find("256 KiB") != std::string::npos);
  CHECK(fault_of_body(images,
                      "{ conv = 'a', out = 1048576, kernel = 255 }, { conv = 'b', out = "
                      "1048576, kernel = 255 }")
            .find("2^48 numbers") != std::string::npos);
}

TEST_CASE("a description without positions names the path in its tree", "[models][description]") {
  const auto tree = config::parse_toml(rows + "part = [{ body = [{ linear = 'a', out = 0 }] }]");
  auto plain = parse_json(to_json(*tree));
  REQUIRE(plain.ok());
  const auto forget = [](const auto& self, Value& value) -> void {
    value.position = {};
    if (auto* list = value.list())
      for (auto& item : *list) self(self, item);
    if (auto* map = value.map())
      for (auto& entry : *map) self(self, entry.value);
  };
  forget(forget, *plain);
  auto kind = ModelKind::read(*plain);
  REQUIRE(std::holds_alternative<ModelKind>(kind));
  const auto& read = std::get<ModelKind>(kind);
  const auto options = complete(read.options(), Value(Value::Map{}));
  const auto model = read.build(*options);
  REQUIRE(!model.ok());
  CHECK(model.error().text ==
        "part[0].body[0].out: out of linear is an integer from 1 to 16777216, and not 0");
}

TEST_CASE("a description says how folders of Hugging Face describe such models",
          "[models][description]") {
  const auto with = [](const std::string& entry) {
    return fault_in(rows +
                    "options.size = { default = 3, help = 'x' }\npart = [{ body = [{ linear = 'a', "
                    "out = 3 }] }]\n[[huggingface]]\n" +
                    entry);
  };
  const std::string types = "types = { one = 'OneForCausalLM' }\n";
  CHECK(with(types + "keys = [['size', 'a.b | c', 5, 'one']]\nfixed = { one = { size = 4 } }\n"
                     "must = { form = ['x', 'y'], 'a.n' = '{2 * size}' }\nharmless = ['z']\n"
                     "usual = { size = '3' }\nleave = ['*.mask']\nprefixes = ['base.']\n") == "");
  CHECK(with("keys = []")
            .ends_with("types is a table of model types and their classes: { gpt2 = "
                       "\"GPT2LMHeadModel\" }"));
  CHECK(with(types + "keyes = []").find("did you mean 'keys'?") != std::string::npos);
  CHECK(with(types + "keys = [['sise', 'n']]").ends_with("has no option 'sise'"));
  CHECK(with(types + "keys = [['size', 'n', 1, 'two']]").ends_with("'two' is none of the types"));
  CHECK(with(types + "keys = [['size']]").find("a row is [option, key]") != std::string::npos);
  CHECK(with(types + "fixed = { two = {} }").ends_with("'two' is none of the types"));
  CHECK(with(types + "must = { n = '{2 *}' }").find("operand") != std::string::npos);
  CHECK(with(types + "leave = ['a*b']").find("at its beginning only") != std::string::npos);
}

TEST_CASE("a preset begins with another one", "[models][description]") {
  const std::string body = "part = [{ body = [{ linear = 'a', out = 3 }] }]\n";
  const auto read = [&](const std::string& presets) {
    const auto tree = config::parse_toml(rows + body + presets);
    if (!tree) FAIL(tree.error().text);
    return ModelKind::read(*tree);
  };
  const auto kind = read(
      "preset.a = { like = 'b' }\npreset.b = { width = 9 }\n"
      "preset.c = { like = 'a', width = 2 }\n");
  REQUIRE(std::holds_alternative<ModelKind>(kind));
  std::string all;
  for (const auto& preset : std::get<ModelKind>(kind).presets())
    all += preset.name + " " + to_json(preset.options) + "\n";
  CHECK(all == "a {\"width\":9}\nb {\"width\":9}\nc {\"width\":2}\n");

  const auto fault = [&](const std::string& presets) { return fault_in(rows + body + presets); };
  CHECK(fault("preset.a = { widht = 9 }").ends_with("the description has no option 'widht'"));
  CHECK(fault("preset.a = { width = 65 }").ends_with("'width' does not fit its type and bounds"));
  CHECK(fault("preset.a = { like = 'b' }").ends_with("like names no preset of this description"));
  CHECK(fault("preset.a = { like = 'b' }\npreset.b = { like = 'a' }")
            .ends_with("does one begin with itself?"));
  CHECK(fault("preset.A = {}").ends_with("letters, digits and underscores"));
}

TEST_CASE("kept values cross the cuts up to their last reader", "[models][description]") {
  const auto made = expanded(images + R"(part = [
  { name = "a", unit = "own", body = [{ conv = "c", out = 2, kernel = 3 }, { keep = "one" }] },
  { name = "b", unit = "own", body = [{ pool = "max", kernel = 2 }, { keep = "two" }, "relu"] },
  { name = "c", unit = "own", body = [{ conv = "c", out = 3, kernel = 1 }, { concat = "two" },
      { upsample = 2 }, { keep = "three" }] },
  { name = "d", unit = "own", body = [{ take = "one" }, { concat = "three" }, { pool = "mean" },
      { linear = "l", out = 3 }] }]
)");
  if (const auto* fault = std::get_if<Fault>(&made)) FAIL(error_of(*fault).text);
  const auto& model = std::get<Model>(made);
  std::string text;
  for (const auto& parts : bundles_of(model, {5, 1, 8, 8})) {
    for (const auto& part : parts) text += part.name + to_string(part.shape) + " ";
    text += "\n";
  }
  // A value that is kept right before a cut is kept behind it: it crosses as the stream alone.
  CHECK(text ==
        "[5, 1, 8, 8] \n"
        "[5, 2, 8, 8] \n"
        "[5, 2, 4, 4] one[5, 2, 8, 8] two[5, 2, 4, 4] \n"
        "[5, 5, 8, 8] one[5, 2, 8, 8] \n"
        "[5, 3] \n");
}

TEST_CASE("kept values that make no sense are refused at the step", "[models][description]") {
  const std::string head = "{ pool = 'mean' }, { linear = 'l', out = 3 }";
  const auto fault = [&](const std::string& steps) {
    return fault_of_body(images, steps + ", " + head);
  };
  CHECK(fault("{ keep = 'a' }, { add = 'a' }") == "");
  CHECK(fault("{ add = 'a' }").ends_with("add 'a' reads a value that no step before it keeps"));
  CHECK(fault("{ keep = 'a' }, 'relu'").ends_with("'a' is kept, and no later step reads it"));
  CHECK(fault("{ keep = 'a' }, { keep = 'a' }, { add = 'a' }").find("already; use another name") !=
        std::string::npos);
  CHECK(fault("{ keep = 'a' }, { conv = 'c', out = 2, kernel = 3 }, { add = 'a' }")
            .find("add 'a' adds images [1, 8, 8], kept at 5:19, to images [2, 8, 8], made at") !=
        std::string::npos);
  CHECK(fault("{ keep = 'a' }, { pool = 'max', kernel = 2 }, { concat = 'a' }")
            .find("concat 'a' joins images [1, 8, 8], kept at 5:19, and images [1, 4, 4]") !=
        std::string::npos);
  CHECK(fault("{ keep = 'a' }, 'relu', { take = 'a' }").find("take 'a' would lose the stream") !=
        std::string::npos);
  CHECK(fault("{ residual = ['relu', { keep = 'a' }] }, { add = 'a' }")
            .find("keep 'a' is inside of a residual or parallel") != std::string::npos);
  CHECK(fault("{ keep = 'a' }, { residual = ['relu', { take = 'a' }] }")
            .find("take 'a' is inside of a residual or parallel") != std::string::npos);
  CHECK(fault("{ keep = '' }, { add = '' }").find("the name of a kept value has") !=
        std::string::npos);
  CHECK(fault("{ upsample = 0 }").find("factor of upsample is an integer from 1 to 16") !=
        std::string::npos);
  const std::string any = header + "input.image = { type = 'f32', shape = [1, 0, 0] }\n";
  CHECK(fault_of_body(any, "{ keep = 'a' }, 'relu', { add = 'a' }, " + head)
            .find("give the input its height and width") != std::string::npos);
  CHECK(fault_of_body(tokens, "{ keep = 'a' }, { add = 'a' }, { embed = 'e', rows = 9, width = 3 }")
            .find("tokens are no numbers to join") != std::string::npos);
}

TEST_CASE("inputs behind the first cross all cuts up to their last reader",
          "[models][description]") {
  const auto made = expanded(tests::own_pair);
  if (const auto* fault = std::get_if<Fault>(&made)) FAIL(error_of(*fault).text);
  const auto& model = std::get<Model>(made);
  CHECK(model.sample.input_name == "source");
  REQUIRE(model.sample.more.size() == 3);
  std::string text;
  for (const auto& parts : bundles_of(model, {5, 6})) {
    for (const auto& part : parts)
      text += part.name + to_string(part.shape) + (part.has_gradient ? "" : "!") + " ";
    text += "\n";
  }
  // A mark stands behind those without a gradient.
  CHECK(text ==
        "[5, 6]! marks[5, 6]! others[5, 6]! sizes[5, 6, 4]! \n"
        "[5, 6, 8] others[5, 6]! sizes[5, 6, 4]! \n"
        "[5, 6, 8] others[5, 6]! sizes[5, 6, 4]! \n"
        "[5, 6, 8] others[5, 6]! sizes[5, 6, 4]! \n"
        "[5, 6, 8] sizes[5, 6, 4]! memory[5, 6, 8] \n"
        "[5, 6, 13] \n");
  CHECK(model.sample.bounds == IntegerBounds{.below = 13});
  CHECK(model.kept[0].bounds == IntegerBounds{.below = 3});
  CHECK(model.kept[1].bounds == IntegerBounds{.below = 11});
  CHECK(model.kept[2].bounds == IntegerBounds{});
}

TEST_CASE("inputs that make no sense are refused at their place", "[models][description]") {
  const std::string more = "input.marks = { type = 'i32', shape = [6], below = 2 }\n";
  const std::string head =
      "{ embed = 'e', rows = 9, width = 3 }, { keep = 'x' }, "
      "{ embed = 'm', of = 'marks', rows = 2, width = 3 }, { add = 'x' }";
  const auto fault = [&](const std::string& steps) { return fault_of_body(tokens + more, steps); };
  CHECK(fault(head) == "");
  CHECK(fault("{ embed = 'e', rows = 9, width = 3 }").ends_with("no step reads the input 'marks'"));
  CHECK(fault("{ embed = 'm', of = 'marks', rows = 2, width = 3 }")
            .find("embed 'm' would lose the stream; a keep comes right before it") !=
        std::string::npos);
  CHECK(fault("{ embed = 'e', of = 'tokns', rows = 9, width = 3 }")
            .find("reads 'tokns', which is no input and which no step before it keeps") !=
        std::string::npos);
  CHECK(fault(head + ", { keep = 'y' }, { embed = 'e2', of = 'tokens', rows = 9, width = 3 }")
            .find("reads the first input, which is the stream before the first step") !=
        std::string::npos);
  CHECK(fault("{ embed = 'e', rows = 9, width = 3 }, { keep = 'marks' }")
            .find("'marks' is an input at 5:15 already; use another name") != std::string::npos);
  CHECK(fault("{ embed = 'e', rows = 9, width = 3 }, { add = 'marks' }")
            .find("adds tokens [6], an input at 5:15, to rows of numbers [6, 3]") !=
        std::string::npos);
  CHECK(fault("{ embed = 'e', rows = 9, width = 3 }, { keep = 'x' }, { take = 'marks' }")
            .find("goes on with tokens [6], which are no numbers; embed reads tokens") !=
        std::string::npos);
  CHECK(fault("{ embed = 'e', rows = 9, width = 3 }, { keep = 'x' }, "
              "{ residual = [{ embed = 'm', of = 'marks', rows = 2, width = 3 }] }, { add = 'x' }")
            .find("embed 'm' is inside of a residual or parallel") != std::string::npos);
  CHECK(fault("{ embed = 'e', rows = 9, width = 3 }, { keep = 'x' }, "
              "{ embed = 'm', of = 'marks', rows = 1, width = 3 }, { add = 'x' }")
            .find("has 1 rows, but tokens are below 2") != std::string::npos);
  const auto of_input = [&](const std::string& input) {
    return fault_of_body(tokens + "input.more = " + input + "\n", head);
  };
  CHECK(of_input("{ type = 'f32', shape = [6, 0] }").find("is an integer from 1 to 16777216") !=
        std::string::npos);
  CHECK(of_input("{ type = 'i32', shape = [6, 3] }").find("spans have two sizes: [length, 2]") !=
        std::string::npos);
  CHECK(of_input("{ type = 'i32', shape = [6] }").find("tokens, and only they, need below") !=
        std::string::npos);
  CHECK(of_input("{ type = 'i32', shape = [6], below = 0 }").find("below is an integer from 1") !=
        std::string::npos);
  CHECK(fault_of_body(header + "input.span = { type = 'i32', shape = [6, 2] }\n", head)
            .find("spans are no stream") != std::string::npos);
  CHECK(fault_of_body(tokens + "input.span = { type = 'i32', shape = [6, 2] }\n",
                      "{ embed = 'e', rows = 9, width = 3 }, { keep = 'x' }, "
                      "{ embed = 's', of = 'span', rows = 9, width = 3 }, { add = 'x' }")
            .find("takes tokens and gets spans [6, 2]") != std::string::npos);
}

TEST_CASE("losses of numbers have no options", "[models][description]") {
  const auto with = [](const std::string& loss) {
    return fault_in(R"(model = { format = 1, name = "mine", help = "Mine." }
input.row = { type = "f32", shape = [5] }
loss = { )" + loss + R"( }
part = [{ body = [{ linear = "head", out = 3 }] }]
)");
  };
  CHECK(with(R"(kind = "binary")").empty());
  CHECK(with(R"(kind = "squared")").empty());
  CHECK(with(R"(kind = "absolute")").find("kind is \"cross_entropy\", \"binary\" or \"squared\"") !=
        std::string::npos);
  for (const std::string key : {"classes", "ignore", "smoothing", "z"})
    CHECK(with("kind = \"squared\", " + key + " = 1")
              .find("only a loss of kind = \"cross_entropy\" has '" + key + "'; leave it out") !=
          std::string::npos);
}

TEST_CASE("a loss of numbers takes no options of a loss over classes", "[models][description]") {
  const std::string text = R"(model = { format = 1, name = "mine", help = "Mine." }
input.tokens = { type = "i32", shape = [5], below = 9 }
loss = { kind = "squared" }
part = [{ body = [{ embed = "words", rows = 9, width = 4 })";
  CHECK(fault_in(text + "] }]\n").empty());
  Value loss, given;
  loss.set("ignore", std::int64_t{-100});
  given.set("loss", loss);
  const auto made = expanded(text + "] }]\n", given);
  const auto* fault = std::get_if<Fault>(&made);
  REQUIRE(fault);
  CHECK(error_of(*fault).text.find("model.loss.ignore changes a loss over classes, and the loss of "
                                   "this model is squared; leave it out") != std::string::npos);
}

TEST_CASE("groups of a convolution divide both numbers of channels", "[models][description]") {
  const auto made = expanded(images + R"(part = [{ body = [{ conv = "a", out = 8, kernel = 3 },
  { conv = "b", out = 12, kernel = 3, groups = 4 }, { conv = "c", out = 12, kernel = 3, groups = "given" },
  { pool = "mean" }, { linear = "head", out = 3 }] }])");
  REQUIRE(std::holds_alternative<Model>(made));
  const auto names = names_of(std::get<Model>(made));
  CHECK(names.find("b.weight[12, 2, 3, 3] c.weight[12, 1, 3, 3]") != std::string::npos);
  const auto fault = [](int out, int groups) {
    return fault_of_body(images, R"({ conv = "a", out = 8, kernel = 3 }, { conv = "b", out = )" +
                                     std::to_string(out) +
                                     ", kernel = 3, groups = " + std::to_string(groups) + " }");
  };
  CHECK(fault(9, 3).find("conv 'b' has groups = 3, which does not divide the 8 channels that it "
                         "gets; each group has as many channels") != std::string::npos);
  CHECK(
      fault(9, 4).find("conv 'b' has groups = 4, which does not divide the 9 channels of out; each "
                       "group has as many channels") != std::string::npos);
}
