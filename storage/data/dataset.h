#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/memory/dtype.h"
#include "core/memory/shape.h"
#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// What one sample looks like. Tokens, labels and classes are i32, other inputs f32; an image is
/// [channels, height, width]; the target of an image is one label, of shape [].
struct SampleShape {
  Shape input;
  DType input_type = DType::f32;
  Shape target;
  DType target_type = DType::i32;

  std::size_t input_bytes() const {
    return static_cast<std::size_t>(input.count()) * bytes_of(input_type);
  }
  std::size_t target_bytes() const {
    return static_cast<std::size_t>(target.count()) * bytes_of(target_type);
  }
};

/// Samples by their number. A sample is a function of its number alone. Any thread may read.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// At least 1.
  virtual std::int64_t count() const = 0;
  virtual const SampleShape& shape() const = 0;
  /// Tokens and labels are in [0, classes()): the vocabulary that a model of this data needs.
  virtual std::int64_t classes() const = 0;
  /// One line for the log: "8191 bytes of text".
  virtual std::string description() const = 0;
  /// Nats per token that no model can go below, where that is known.
  virtual std::optional<double> entropy_rate() const { return {}; }

  /// Writes sample `index` of [0, count()) to spans of exactly the sizes that shape() gives.
  virtual Status read(std::int64_t index, std::span<std::byte> input,
                      std::span<std::byte> target) const = 0;
};

/// What the model asks of its data.
struct DataNeeds {
  std::int64_t context = 0;  // Tokens in a sample; 0 where the model takes no tokens.
  std::int64_t classes = 0;  // Vocabulary or classes of the model; 0 where the data decides.
  /// The model's vocabulary if its configuration gives a number, else 0. With it no token of a
  /// shard is read before its sample is: one that is too large is an error of that sample.
  std::int64_t vocabulary = 0;
};

/// Opens what a configuration names:
///
///   made:markov?states=64&successors=4&samples=100000&seed=1&stream=0    tokens with known entropy
///   made:glyphs?size=28&channels=1&noise=40&samples=60000&seed=1&stream=0    images of 10 digits
///   made:gaussians?dims=16&classes=4&spread=25&samples=10000&seed=1&stream=0    clouds of points
///   a.txt, or any other text?tokenizer=tokenizer.json    bytes, or tokens
///   a.jsonl?tokenizer=tokenizer.json    a document per line: "text" or "tokens"
///   a.bin, a_*.bin    token shards
///   train-images-idx3-ubyte?labels=train-labels-idx1-ubyte    images; labels are found beside them
///   a.safetensors    `input` and `target`, a sample per row
///
/// Made data with the same `seed` is from the same source; another `stream` gives other samples of
/// it, to validate with. Token i of sample s is token s * context + i of the data, and its target
/// is the token after. What does not fit the needs is an error here, not in the middle of training.
Result<std::unique_ptr<Dataset>> open_dataset(const std::string& spec, const DataNeeds& needs,
                                              Files& files);

}  // namespace troupe::storage
