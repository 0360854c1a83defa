#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/integer_bounds.h"
#include "core/memory/dtype.h"
#include "core/memory/shape.h"
#include "core/number_bounds.h"
#include "core/result.h"
#include "storage/data/order.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// A tensor that each sample has.
struct Field {
  std::string name;
  Shape shape;
  DType type = DType::f32;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.count()) * bytes_of(type); }

  friend bool operator==(const Field&, const Field&) = default;
};

/// The shapes of one sample. Tokens, spans, labels and classes are i32, other inputs f32. An image
/// is [channels, height, width]; its target is one label, of shape [], or an image. In targets in
/// f32 a NaN does not count.
struct SampleShape {
  Shape input;  // The first input.
  DType input_type = DType::f32;
  Shape target;
  DType target_type = DType::i32;
  std::string input_name = "input";
  std::vector<Field> more = {};  // The inputs behind the first one, in the model's order.

  std::size_t input_bytes() const {
    return static_cast<std::size_t>(input.count()) * bytes_of(input_type);
  }
  std::size_t target_bytes() const {
    return static_cast<std::size_t>(target.count()) * bytes_of(target_type);
  }

  friend bool operator==(const SampleShape&, const SampleShape&) = default;
};

/// The memory that a sample is written to.
struct SampleSpans {
  std::vector<std::span<std::byte>> inputs;
  std::span<std::byte> target;

  /// Returns whether they have exactly the sizes of a shape.
  bool fits(const SampleShape& shape) const;
};

/// Samples by place. A sample depends on its place alone: on its index, and if words are masked on
/// the pass, too. Any thread may read.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Returns at least 1.
  virtual std::int64_t count() const = 0;
  virtual const SampleShape& shape() const = 0;
  /// Returns the number of classes or tokens. Tokens and labels lie in [0, classes()), except for
  /// targets that do not count, which are the ignored one. 1 if there are no integers.
  virtual std::int64_t classes() const = 0;
  /// Returns one line for the log: "8191 bytes of text".
  virtual std::string description() const = 0;
  /// Returns the entropy in nats per token, if it is known. No model's loss can go below it.
  virtual std::optional<double> entropy_rate() const { return {}; }

  /// Returns the names of the inputs that the data can offer.
  virtual std::vector<std::string> fields() const { return {shape().input_name}; }

  /// Writes sample `place.sample` of [0, count()) as pass `place.pass` sees it. The spans must fit
  /// shape().
  virtual Status read(const Place& place, const SampleSpans& to) const = 0;
};

/// An input that a model takes.
struct InputNeed {
  Field field;
  IntegerBounds bounds = {};  // The bounds of integers.
  /// Whether they are below the vocabulary, which the data decides. They have no bounds then.
  bool of_vocabulary = false;

  friend bool operator==(const InputNeed&, const InputNeed&) = default;
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
  /// The inputs of a model that takes several, in its order. Empty: it takes one, which may have
  /// any name.
  std::vector<InputNeed> inputs = {};
  Shape target = {};                      // If there are such inputs.
  std::optional<DType> target_type = {};  // None: of any type.
  NumberBounds target_bounds = {};        // The bounds of targets in f32.

  friend bool operator==(const DataNeeds&, const DataNeeds&) = default;
};

/// Returns an error that names the fields on both sides unless all inputs of a model that takes
/// several are offered.
Status check_offered(const std::string& data, const std::vector<std::string>& offered,
                     const DataNeeds& needs);

/// Opens the data that a configuration names:
///
///   made:markov?states=64&successors=4&samples=100000&seed=1&stream=0    tokens with known entropy
///   made:glyphs?size=28&channels=1&noise=40&samples=60000&seed=1&stream=0    images of 10 digits
///   made:glyphs?target=mask    the same images; the target is their ink: 1 or 0 for each pixel
///   made:glyphs?target=clean    the same images; the target is the image without noise
///   made:gaussians?dims=16&classes=4&spread=25&samples=10000&seed=1&stream=0    clouds of points
///   a.txt, or any other text?tokenizer=tokenizer.json    bytes, or tokens
///   a.jsonl?tokenizer=tokenizer.json    a document per line: "text" or "tokens"
///   a.jsonl?tokenizer=tokenizer.json    a sample per line: "prompt" and "answer"
///   a.bin, a_*.bin    token shards
///   train-images-idx3-ubyte?labels=train-labels-idx1-ubyte    images; labels are found beside them
///   a.safetensors    `input` or the model's inputs by name, and `target`, a sample per row
///
/// Generated data of one `seed` has one distribution. Another `stream` draws other samples from it,
/// for validation. Token i of sample s is token s * context + i of the data; its target is the next
/// token. Data that does not fit the needs is an error now, not in the middle of training.
Result<std::unique_ptr<Dataset>> open_dataset(const std::string& spec, const DataNeeds& needs,
                                              Files& files);

}  // namespace troupe::storage
