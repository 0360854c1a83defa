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

/// The shapes of one sample. Tokens, labels and classes are i32, other inputs f32. An image is
/// [channels, height, width]; its target is one label, of shape [].
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

/// Samples by index. A sample depends on its index alone. Any thread may read.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Returns at least 1.
  virtual std::int64_t count() const = 0;
  virtual const SampleShape& shape() const = 0;
  /// Returns the number of classes or tokens. Tokens and labels lie in [0, classes()), except for
  /// targets that do not count, which are the ignored one.
  virtual std::int64_t classes() const = 0;
  /// Returns one line for the log: "8191 bytes of text".
  virtual std::string description() const = 0;
  /// Returns the entropy in nats per token, if it is known. No model's loss can go below it.
  virtual std::optional<double> entropy_rate() const { return {}; }

  /// Writes sample `index` of [0, count()). The spans must have exactly the sizes of shape().
  virtual Status read(std::int64_t index, std::span<std::byte> input,
                      std::span<std::byte> target) const = 0;
};

/// The model's requirements on its data.
struct DataNeeds {
  std::int64_t context = 0;  // Tokens in a sample. 0 if the model takes no tokens.
  std::int64_t classes = 0;  // The model's vocabulary or classes. 0 if the data decides.
  /// The model's vocabulary if its configuration gives a number, else 0. If set, tokens of a shard
  /// are checked when their sample is read, not at opening.
  std::int64_t vocabulary = 0;
  /// The target that does not count. Data that has such targets needs one.
  std::optional<std::int32_t> ignore = {};
};

/// Opens the data that a configuration names:
///
///   made:markov?states=64&successors=4&samples=100000&seed=1&stream=0    tokens with known entropy
///   made:glyphs?size=28&channels=1&noise=40&samples=60000&seed=1&stream=0    images of 10 digits
///   made:gaussians?dims=16&classes=4&spread=25&samples=10000&seed=1&stream=0    clouds of points
///   a.txt, or any other text?tokenizer=tokenizer.json    bytes, or tokens
///   a.jsonl?tokenizer=tokenizer.json    a document per line: "text" or "tokens"
///   a.jsonl?tokenizer=tokenizer.json    a sample per line: "prompt" and "answer"
///   a.bin, a_*.bin    token shards
///   train-images-idx3-ubyte?labels=train-labels-idx1-ubyte    images; labels are found beside them
///   a.safetensors    `input` and `target`, a sample per row
///
/// Generated data of one `seed` has one distribution. Another `stream` draws other samples from it,
/// for validation. Token i of sample s is token s * context + i of the data; its target is the next
/// token. Data that does not fit the needs is an error now, not in the middle of training.
Result<std::unique_ptr<Dataset>> open_dataset(const std::string& spec, const DataNeeds& needs,
                                              Files& files);

}  // namespace troupe::storage
