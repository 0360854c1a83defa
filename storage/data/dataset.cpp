#include "storage/data/dataset.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>

#include "core/text.h"
#include "storage/data/array_dataset.h"
#include "storage/data/data_spec.h"
#include "storage/data/made_data.h"
#include "storage/data/token_dataset.h"

namespace troupe::storage {
namespace {

constexpr std::int64_t most_samples = std::int64_t{1} << 48;

using Opened = Result<std::unique_ptr<Dataset>>;

DrawKey key_of(DataSpec& spec) {
  DrawKey key;
  key.seed = static_cast<std::uint64_t>(spec.integer("seed", 1, 0, INT64_MAX));
  key.stream = static_cast<std::uint32_t>(spec.integer("stream", 0, 0, 1'000'000));
  return key;
}

Opened open_markov(DataSpec spec, const DataNeeds& needs) {
  MarkovOptions options;
  options.states = static_cast<std::int32_t>(spec.integer("states", options.states, 2, 200'000));
  options.successors = static_cast<std::int32_t>(spec.integer(
      "successors", std::min(options.successors, options.states), 1, std::min(options.states, 64)));
  options.samples = spec.integer("samples", options.samples, 1, most_samples);
  options.key = key_of(spec);
  if (auto status = spec.finish(); !status) return status.error();
  if (needs.classes > 0 && options.states > needs.classes)
    return Error{"made:markov has states = " + std::to_string(options.states) +
                 ", but the model's vocabulary has " + std::to_string(needs.classes) +
                 "; set model.vocab to at least that, or to \"auto\""};
  return make_markov(options, needs.context);
}

Opened open_glyphs(DataSpec spec) {
  GlyphOptions options;
  options.size = static_cast<std::int32_t>(spec.integer("size", options.size, 8, 256));
  options.channels = static_cast<std::int32_t>(spec.integer("channels", options.channels, 1, 16));
  options.noise = static_cast<std::int32_t>(spec.integer("noise", options.noise, 0, 255));
  options.samples = spec.integer("samples", options.samples, 1, most_samples);
  options.key = key_of(spec);
  const auto target = spec.text("target").value_or("digit");
  if (auto status = spec.finish(); !status) return status.error();
  using Target = GlyphOptions::Target;
  if (target != "digit" && target != "mask" && target != "clean")
    return Error{"made:glyphs has target = " + target +
                 "; digit, mask (the ink of each pixel) or clean (the image without noise) was "
                 "wanted"};
  options.target = target == "digit"  ? Target::digit
                   : target == "mask" ? Target::mask
                                      : Target::clean;
  return make_glyphs(options);
}

Opened open_gaussians(DataSpec spec) {
  GaussianOptions options;
  options.dims = static_cast<std::int32_t>(spec.integer("dims", options.dims, 1, 16'384));
  options.classes = static_cast<std::int32_t>(spec.integer("classes", options.classes, 1, 1'000));
  options.spread = static_cast<std::int32_t>(spec.integer("spread", options.spread, 0, 10'000));
  options.samples = spec.integer("samples", options.samples, 1, most_samples);
  options.key = key_of(spec);
  if (auto status = spec.finish(); !status) return status.error();
  return make_gaussians(options);
}

/// The content of a dataset's samples, for error messages.
enum class Kind { tokens, points, tensors, unknown };

Kind kind_of(const DataSpec& spec) {
  const auto& name = spec.name();
  if (spec.kind() == DataSpec::Kind::made) {
    if (name == "markov") return Kind::tokens;
    return name == "glyphs" || name == "gaussians" ? Kind::points : Kind::unknown;
  }
  if (name.ends_with(".safetensors")) return Kind::tensors;
  const auto file = name_of(name);
  const bool idx = file.ends_with("-ubyte") || file.ends_with(".idx");
  return idx ? Kind::points : Kind::tokens;
}

/// Returns the extension of a file that does not hold text, if it has one.
std::optional<std::string_view> foreign_ending(std::string_view path) {
  constexpr std::array<std::string_view, 12> endings = {".gz",      ".zst",   ".xz",  ".zip",
                                                        ".parquet", ".arrow", ".npy", ".npz",
                                                        ".pt",      ".pkl",   ".png", ".jpg"};
  for (const auto ending : endings)
    if (path.ends_with(ending)) return ending;
  return {};
}

Opened open_path(const DataSpec& spec, Kind kind, const DataNeeds& needs, Files& files) {
  if (kind == Kind::tensors) return open_tensors(spec, needs, files);
  if (kind == Kind::points) return open_images(spec, needs, files);
  if (const auto ending = foreign_ending(spec.name()))
    return Error{spec.name() + ": files ending in \"" + std::string(*ending) +
                 "\" are not read; text, .jsonl, .bin token shards, IDX and .safetensors are"};
  if (spec.name().ends_with(".bin")) return open_shards(spec, needs, files);
  return open_text(spec, needs, files);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string form_text(const Field& field) {
  return std::string(to_string(field.type)) + " " + to_string(field.shape);
}

/// Returns an error unless the data gives what a model of several inputs takes.
Status check_fields(const std::string& text, const Dataset& data, const DataNeeds& needs) {
  if (needs.inputs.empty()) return Done{};
  if (auto good = check_offered(text, data.fields(), needs); !good) return good;
  const auto& shape = data.shape();
  std::vector<Field> found = {{needs.inputs[0].field.name, shape.input, shape.input_type}};
  found.insert(found.end(), shape.more.begin(), shape.more.end());
  assert(found.size() == needs.inputs.size() && "a dataset gives other fields than were asked for");
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!(found[i] == needs.inputs[i].field))
      return Error{"\"" + text + "\" has the field '" + found[i].name + "' as " +
                   form_text(found[i]) + ", and the model takes " +
                   form_text(needs.inputs[i].field)};
  if (!(shape.target == needs.target))
    return Error{"\"" + text + "\" has targets " + to_string(shape.target) +
                 ", and the model takes " + to_string(needs.target)};
  return Done{};
}

/// Returns an error unless targets have the type that the model's loss takes.
Status check_target_type(const std::string& text, const Dataset& data, const DataNeeds& needs) {
  const auto found = data.shape().target_type;
  if (!needs.target_type || *needs.target_type == found) return Done{};
  return Error{"\"" + text + "\" has targets in " + std::string(to_string(found)) +
               ", and the model's loss takes " + std::string(to_string(*needs.target_type)) +
               (found == DType::f32 ? ": classes or tokens; give the model a loss of kind = "
                                      "\"binary\" or \"squared\", or integers as targets"
                                    : ": numbers; give data with targets in fp32, or the model a "
                                      "loss of kind = \"cross_entropy\"")};
}

Opened open_any(const std::string& text, const DataNeeds& needs, Files& files) {
  const auto spec = DataSpec::parse(text);
  if (!spec) return spec.error();
  const auto kind = kind_of(*spec);
  if (kind == Kind::tokens && needs.context <= 0)
    return Error{"\"" + text +
                 "\" is made of tokens, but the model has no context: it takes images " +
                 "or points"};
  if (kind == Kind::points && needs.context > 0)
    return Error{"\"" + text + "\" is made of images or points, but the model takes tokens"};
  if (spec->kind() == DataSpec::Kind::path) return open_path(*spec, kind, needs, files);

  if (kind == Kind::unknown) {
    const auto near = nearest(spec->name(), {"markov", "glyphs", "gaussians"});
    return Error{"\"" + text + "\": there is no made data of that name" +
                 (near.empty() ? "" : "; did you mean \"made:" + std::string(near) + "\"?") +
                 " (made:markov, made:glyphs, made:gaussians)"};
  }
  auto opened = spec->name() == "markov"   ? open_markov(*spec, needs)
                : spec->name() == "glyphs" ? open_glyphs(*spec)
                                           : open_gaussians(*spec);
  if (opened && needs.classes > 0 && (*opened)->classes() > needs.classes)
    return Error{"\"" + text + "\" has " + std::to_string((*opened)->classes()) +
                 " classes, but the model has " + std::to_string(needs.classes) +
                 "; set model.classes to at least that"};
  return opened;
}

}  // namespace

bool SampleSpans::fits(const SampleShape& shape) const {
  if (inputs.size() != 1 + shape.more.size() || inputs[0].size() != shape.input_bytes())
    return false;
  for (std::size_t i = 0; i < shape.more.size(); ++i)
    if (inputs[i + 1].size() != shape.more[i].bytes()) return false;
  return target.size() == shape.target_bytes();
}

Status check_offered(const std::string& data, const std::vector<std::string>& offered,
                     const DataNeeds& needs) {
  std::vector<std::string> wanted;
  for (const auto& need : needs.inputs) wanted.push_back(need.field.name);
  for (const auto& name : wanted)
    if (std::ranges::count(offered, name) == 0)
      return Error{"\"" + data + "\" has no field '" + name + "': it has " + joined(offered) +
                   ", and the model takes " + joined(wanted)};
  return Done{};
}

Opened open_dataset(const std::string& text, const DataNeeds& needs, Files& files) {
  auto opened = open_any(text, needs, files);
  if (!opened) return opened;
  if (auto good = check_target_type(text, **opened, needs); !good) return good.error();
  if (auto good = check_fields(text, **opened, needs); !good) return good.error();
  return opened;
}

}  // namespace troupe::storage
