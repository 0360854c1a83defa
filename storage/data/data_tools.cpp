#include "storage/data/data_tools.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/units.h"
#include "storage/data/array_dataset.h"
#include "storage/data/documents.h"
#include "storage/data/idx.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {
namespace {

/// The size limit of a dataset, which is built in memory.
constexpr std::uint64_t most_bytes = std::uint64_t{8} << 30;

/// The bytes of all samples, concatenated.
struct Samples {
  std::vector<std::byte> input, target;
};

Result<Samples> read_all(const Dataset& dataset) {
  const auto& shape = dataset.shape();
  const auto each = shape.input_bytes() + shape.target_bytes();
  if (static_cast<std::uint64_t>(dataset.count()) > most_bytes / each)
    return Error{std::to_string(dataset.count()) + " samples of " + size_text(each) +
                 " are more than the " + size_text(most_bytes) +
                 " that are written at once; ask for fewer samples"};
  const auto count = static_cast<std::size_t>(dataset.count());
  Samples samples{std::vector<std::byte>(count * shape.input_bytes()),
                  std::vector<std::byte>(count * shape.target_bytes())};
  for (std::size_t i = 0; i < count; ++i) {
    const SampleSpans to{
        {std::span(samples.input).subspan(i * shape.input_bytes(), shape.input_bytes())},
        std::span(samples.target).subspan(i * shape.target_bytes(), shape.target_bytes())};
    const auto status = dataset.read({.sample = static_cast<std::int64_t>(i)}, to);
    if (!status) return status.error();
  }
  return samples;
}

template <class T>
std::vector<T> elements_of(std::span<const std::byte> bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return elements;
}

Shape with_count(std::int64_t count, const Shape& sample) {
  Shape shape{count};
  for (const auto size : sample) shape.append(size);
  return shape;
}

using Written = Result<std::vector<std::string>>;

Written write_tokens(Files& files, const Dataset& dataset, const Samples& samples,
                     const std::string& path) {
  if (dataset.shape().input_type != DType::i32 || dataset.shape().target_type != DType::i32 ||
      dataset.shape().target.rank() != 1)
    return Error{path + ": a token shard holds tokens, which these samples are not"};
  auto tokens = elements_of<std::int32_t>(samples.input);
  tokens.push_back(elements_of<std::int32_t>(samples.target).back());
  const auto width =
      dataset.classes() <= 65'536 ? TokenShard::Width::bits16 : TokenShard::Width::bits32;
  if (auto status = write_token_shard(files, path, width, tokens); !status) return status.error();
  return std::vector{path};
}

Written write_images(Files& files, const Dataset& dataset, const Samples& samples,
                     const std::string& path) {
  const auto labels_path = labels_beside(path);
  if (!labels_path)
    return Error{path + ": the name of an IDX file of images has \"images\" in it, so that the " +
                 "labels can lie beside it: train-images-idx3-ubyte"};
  const auto& sample = dataset.shape();
  if (sample.input_type != DType::f32 || sample.input.rank() != 3 || sample.target.rank() != 0 ||
      sample.target_type != DType::i32 || dataset.classes() > 256)
    return Error{path + ": IDX holds images of up to 256 classes, which these samples are not"};
  std::vector<std::uint8_t> pixels;
  for (const float value : elements_of<float>(samples.input)) {
    if (!(value >= 0 && value <= 1))
      return Error{path + ": a pixel is not within 0 and 1; IDX cannot hold it"};
    pixels.push_back(static_cast<std::uint8_t>(std::lround(value * 255.0f)));
  }
  std::vector<std::uint8_t> labels;
  for (const auto label : elements_of<std::int32_t>(samples.target))
    labels.push_back(static_cast<std::uint8_t>(label));
  const auto& image = sample.input;
  const auto shape = image[0] == 1 ? Shape{dataset.count(), image[1], image[2]}
                                   : with_count(dataset.count(), image);
  if (auto status = write_idx(files, path, shape, pixels); !status) return status.error();
  if (auto status = write_idx(files, *labels_path, Shape{dataset.count()}, labels); !status)
    return status.error();
  return std::vector{path, *labels_path};
}

Written write_tensors(Files& files, const Dataset& dataset, const Samples& samples,
                      const std::string& path) {
  const auto& shape = dataset.shape();
  const TensorView tensors[] = {{"input", stored_type(shape.input_type),
                                 with_count(dataset.count(), shape.input), samples.input},
                                {"target", stored_type(shape.target_type),
                                 with_count(dataset.count(), shape.target), samples.target}};
  const auto written = write_safetensors(files, path, tensors);
  if (!written) return written.error();
  return std::vector{path};
}

}  // namespace

Written write_dataset(Files& files, const Dataset& dataset, const std::string& path) {
  const auto samples = read_all(dataset);
  if (!samples) return samples.error();
  if (path.ends_with(".bin")) return write_tokens(files, dataset, *samples, path);
  if (path.ends_with(".safetensors")) return write_tensors(files, dataset, *samples, path);
  if (path.ends_with("-ubyte") || path.ends_with(".idx"))
    return write_images(files, dataset, *samples, path);
  return Error{path + ": the ending does not say what to write; .bin (tokens), -ubyte or .idx " +
               "(images) or .safetensors was wanted"};
}

std::size_t split_point(std::string_view text, double share) {
  assert(share >= 0 && share < 1);
  if (share == 0 || text.size() < 2) return text.size();
  const auto about =
      static_cast<std::size_t>(std::lround(static_cast<double>(text.size()) * (1 - share)));
  std::size_t at = std::clamp<std::size_t>(about, 1, text.size() - 1);
  // The line break that is nearest to the end of the first part, but not far from it.
  const std::size_t reach = text.size() / 20;
  const auto before = text.rfind('\n', at - 1), after = text.find('\n', at - 1);
  if (before != text.npos && before + reach >= at) return before + 1;
  if (after != text.npos && after + 1 < text.size() && after <= at + reach) return after + 1;
  while (at < text.size() - 1 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  return at;
}

namespace {

/// Writes one part of an input.
Result<PreparedPart> prepare_part(Files& files, const PrepareOrder& order, std::string_view text,
                                  const std::string& prefix, const Tokenizer* tokenizer) {
  PreparedPart part{.files = {}, .bytes = static_cast<std::int64_t>(text.size())};
  std::vector<std::int32_t> pending;
  const auto full = static_cast<std::size_t>(order.shard_tokens);
  const auto write = [&](std::span<const std::int32_t> tokens) -> Status {
    char number[16];
    std::snprintf(number, sizeof number, "_%06zu", part.files.size());
    const auto path = prefix + number + ".bin";
    if (auto status = write_token_shard(files, path, order.width, tokens); !status) return status;
    part.files.push_back(path);
    part.tokens += static_cast<std::int64_t>(tokens.size());
    return Done{};
  };
  const auto give = [&](std::vector<std::int32_t> tokens) -> Status {
    ++part.documents;
    pending.insert(pending.end(), tokens.begin(), tokens.end());
    std::span<const std::int32_t> left(pending);
    for (; left.size() >= full; left = left.subspan(full))
      if (auto status = write(left.first(full)); !status) return status;
    pending.erase(pending.begin(), pending.end() - static_cast<std::ptrdiff_t>(left.size()));
    return Done{};
  };
  if (auto status = for_each_document(order.input, text, tokenizer, give); !status)
    return status.error();
  if (!pending.empty())
    if (auto status = write(pending); !status) return status.error();
  return part;
}

}  // namespace

Result<Prepared> prepare_tokens(Files& files, const PrepareOrder& order,
                                const Tokenizer* tokenizer) {
  assert(order.shard_tokens >= 1);
  const auto bytes = files.read(order.input);
  if (!bytes) return bytes.error();
  const std::string_view text = bytes->text();
  const auto cut = split_point(text, order.validate);
  Prepared prepared;
  auto train = prepare_part(files, order, text.substr(0, cut), order.prefix, tokenizer);
  if (!train) return train.error();
  prepared.train = std::move(*train);
  if (cut == text.size()) return prepared;
  auto validate = prepare_part(files, order, text.substr(cut), order.prefix + "-valid", tokenizer);
  if (!validate) return validate.error();
  prepared.validate = std::move(*validate);
  return prepared;
}

}  // namespace troupe::storage
