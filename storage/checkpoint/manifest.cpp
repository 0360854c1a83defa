#include "storage/checkpoint/manifest.h"

#include <algorithm>
#include <set>

#include "core/json.h"

namespace troupe::storage {
namespace {

constexpr std::string_view format = "troupe checkpoint 1";
constexpr std::size_t digest_digits = 32;
/// The end of a manifest: the digest of its text, taken with zeros in place of the digest's digits.
constexpr std::string_view tail_begin = "\"digest\": \"";
constexpr std::string_view tail_end = "\"\n}\n";
constexpr JsonLimits limits = {std::size_t{256} << 20, 64};

Value to_value(const Shape& shape) {
  Value::List sizes;
  for (const auto size : shape) sizes.push_back(size);
  return sizes;
}

Value to_value(const Part& part) {
  Value::List tensors;
  for (const auto& tensor : part.tensors)
    tensors.push_back(Value::Map{{"name", tensor.name, {}},
                                 {"type", to_string(tensor.type), {}},
                                 {"shape", to_value(tensor.shape), {}},
                                 {"digest", to_string(tensor.digest), {}}});
  return Value::Map{{"file", part.file, {}},
                    {"kind", to_string(part.kind), {}},
                    {"bytes", static_cast<std::int64_t>(part.bytes), {}},
                    {"digest", to_string(part.digest), {}},
                    {"tensors", std::move(tensors), {}}};
}

std::optional<Digest> digest_from(std::string_view text) {
  if (text.size() != digest_digits) return {};
  std::uint64_t halves[2] = {};
  for (std::size_t i = 0; i < digest_digits; ++i) {
    const auto digit = std::string_view("0123456789abcdef").find(text[i]);
    if (digit == std::string_view::npos) return {};
    halves[i / 16] = (halves[i / 16] << 4) | digit;
  }
  return Digest{halves[0], halves[1]};
}

/// Returns whether a name can only mean a file in the checkpoint's own directory.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 200 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

/// A reader of a map's fields. The first invalid field sets the error. An invalid field reads as
/// its type's default.
class Fields {
 public:
  explicit Fields(const Value& map) : map_(map) {}

  std::int64_t count(std::string_view key) {
    const auto* field = map_.find(key);
    if (field && field->integer() && *field->integer() >= 0) return *field->integer();
    return wrong<std::int64_t>(key, "an integer of at least 0");
  }
  std::string text(std::string_view key) {
    const auto* field = map_.find(key);
    if (field && field->text()) return *field->text();
    return wrong<std::string>(key, "a text");
  }
  Digest digest(std::string_view key) {
    if (const auto digest = digest_from(text(key))) return *digest;
    return wrong<Digest>(key, "a digest of 32 hexadecimal digits");
  }
  Value value(std::string_view key) {
    const auto* field = map_.find(key);
    return field ? *field : wrong<Value>(key, "a value");
  }
  const Value::List& list(std::string_view key) {
    static const Value::List none;
    const auto* field = map_.find(key);
    if (field && field->list()) return *field->list();
    wrong<int>(key, "a list");
    return none;
  }

  Status status() const { return error_ ? Status(*error_) : Status(Done{}); }

 private:
  template <class T>
  T wrong(std::string_view key, std::string_view wanted) {
    if (!error_) error_ = Error{"\"" + std::string(key) + "\" is not " + std::string(wanted)};
    return {};
  }

  const Value& map_;
  std::optional<Error> error_;
};

Result<TensorDigest> read_tensor(const Value& value) {
  Fields fields(value);
  TensorDigest tensor;
  tensor.name = fields.text("name");
  const auto type = stored_type(fields.text("type"));
  tensor.digest = fields.digest("digest");
  const auto& sizes = fields.list("shape");
  if (auto status = fields.status(); !status) return status.error();
  if (!type) return Error{"tensor \"" + tensor.name + "\": its type is not known"};
  tensor.type = *type;
  if (sizes.size() > Shape::max_rank)
    return Error{"tensor \"" + tensor.name + "\" has too many dimensions"};
  for (const auto& size : sizes) {
    if (!size.integer() || *size.integer() < 0)
      return Error{"tensor \"" + tensor.name + "\": its shape holds no size"};
    tensor.shape.append(*size.integer());
  }
  return tensor;
}

Result<Part> read_part(const Value& value) {
  Fields fields(value);
  Part part;
  part.file = fields.text("file");
  const auto kind = fields.text("kind");
  part.bytes = static_cast<std::uint64_t>(fields.count("bytes"));
  part.digest = fields.digest("digest");
  const auto& tensors = fields.list("tensors");
  if (auto status = fields.status(); !status) return status.error();
  if (!is_plain_name(part.file)) return Error{"\"" + part.file + "\" is no plain file name"};
  if (kind != "weights" && kind != "optimizer")
    return Error{"a part of kind \"" + kind + "\"; weights or optimizer was wanted"};
  part.kind = kind == "weights" ? PartKind::weights : PartKind::optimizer;
  for (const auto& each : tensors) {
    auto tensor = read_tensor(each);
    if (!tensor) return within(part.file, tensor.error());
    part.tensors.push_back(std::move(*tensor));
  }
  return part;
}

}  // namespace

std::string_view to_string(PartKind kind) {
  switch (kind) {
    case PartKind::weights:
      return "weights";
    case PartKind::optimizer:
      return "optimizer";
  }
  return "?";
}

Digest combined_digest(std::vector<TensorDigest> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string text;
  for (const auto& tensor : tensors)
    text += to_json(tensor.name) + " " + std::string(to_string(tensor.type)) + " " +
            to_string(tensor.shape) + " " + to_string(tensor.digest) + "\n";
  return digest_of(text);
}

TensorDigest tensor_digest(const TensorView& view) {
  return {view.name, view.type, view.shape, digest_of(view.bytes)};
}

Digest weights_digest(std::span<const NamedTensor> weights) {
  std::vector<TensorDigest> digests;
  for (const auto& [name, tensor] : weights) digests.push_back(tensor_digest(view(name, tensor)));
  return combined_digest(std::move(digests));
}

Digest weights_digest(std::span<const Part> parts) {
  std::vector<TensorDigest> digests;
  for (const auto& part : parts)
    if (part.kind == PartKind::weights)
      digests.insert(digests.end(), part.tensors.begin(), part.tensors.end());
  return combined_digest(std::move(digests));
}

Status check_parts(std::span<const Part> parts) {
  std::set<std::string_view> files;
  std::set<std::pair<PartKind, std::string_view>> tensors;
  for (const auto& part : parts) {
    if (!files.insert(part.file).second) return Error{"the file " + part.file + " is there twice"};
    for (const auto& tensor : part.tensors)
      if (!tensors.emplace(part.kind, tensor.name).second)
        return Error{"the tensor \"" + tensor.name + "\" is there twice"};
  }
  return Done{};
}

std::string write_manifest(const Manifest& manifest) {
  Value::List parts;
  for (const auto& part : manifest.parts) parts.push_back(to_value(part));
  Value::Map fields{{"format", format, {}}};
  if (!manifest.run.empty()) fields.push_back({"run", manifest.run, {}});
  for (Value::Entry& entry : Value::Map{{"step", manifest.step, {}},
                                        {"samples", manifest.samples, {}},
                                        {"recipe_digest", to_string(manifest.recipe_digest), {}},
                                        {"weights_digest", to_string(manifest.weights_digest), {}},
                                        {"model", manifest.model, {}},
                                        {"recipe", manifest.recipe, {}},
                                        {"state", manifest.state, {}},
                                        {"parts", std::move(parts), {}},
                                        {"digest", std::string(digest_digits, '0'), {}}})
    fields.push_back(std::move(entry));
  auto text = to_json_lines(std::move(fields));
  assert(text.ends_with(tail_end));
  const auto digest = to_string(digest_of(text));
  return text.replace(text.size() - tail_end.size() - digest_digits, digest_digits, digest);
}

Result<Manifest> read_manifest(std::string_view text) {
  const auto tail = tail_begin.size() + digest_digits + tail_end.size();
  if (text.size() > limits.bytes) return Error{"is too long for a manifest"};
  if (text.size() < tail || !text.ends_with(tail_end) ||
      text.substr(text.size() - tail, tail_begin.size()) != tail_begin)
    return Error{"is no manifest, or a damaged one: it does not end in its digest"};
  std::string zeroed(text);
  const auto at = text.size() - tail_end.size() - digest_digits;
  zeroed.replace(at, digest_digits, digest_digits, '0');
  if (text.substr(at, digest_digits) != to_string(digest_of(zeroed)))
    return Error{"is damaged: its contents do not have the digest that it ends with"};

  // The digest detects accidents, not attacks, so the code below trusts nothing.
  const auto tree = parse_json(text, limits);
  if (!tree) return tree.error();
  Fields fields(*tree);
  if (const auto found = fields.text("format"); found != format)
    return Error{"is of format \"" + found + "\"; \"" + std::string(format) + "\" was wanted"};
  Manifest manifest;
  manifest.step = fields.count("step");
  manifest.samples = fields.count("samples");
  manifest.recipe_digest = fields.digest("recipe_digest");
  manifest.weights_digest = fields.digest("weights_digest");
  manifest.model = fields.value("model");
  manifest.recipe = fields.value("recipe");
  manifest.state = fields.value("state");
  if (const Value* run = tree->find("run"); run && run->text()) manifest.run = *run->text();
  const auto& parts = fields.list("parts");
  if (auto status = fields.status(); !status) return status.error();
  for (const auto& each : parts) {
    auto part = read_part(each);
    if (!part) return within("parts", part.error());
    manifest.parts.push_back(std::move(*part));
  }
  if (auto status = check_parts(manifest.parts); !status) return status.error();
  if (weights_digest(manifest.parts) != manifest.weights_digest)
    return Error{"its weights do not have the digest that it gives"};
  return manifest;
}

}  // namespace troupe::storage
