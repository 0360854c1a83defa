#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/data/data_spec.h"
#include "storage/data/dataset.h"

namespace troupe::storage {

/// How samples are made of a text: the options of a data spec.
struct TextOptions {
  enum class Documents : std::uint8_t {
    joined,  // A sample is a piece of one long text.
    apart,   // As above, but no token looks into another document than its own.
    padded,  // A sample is one document, or a piece of one that is longer.
  };

  Documents documents = Documents::joined;
  std::optional<std::int32_t> end;  // The token that ends a document.
  std::optional<std::int32_t> pad;  // Stands where a sample has no token. None: 0.
  double mask = 0;                  // The share of masked tokens. 0: none are.
  std::optional<std::int32_t> mask_id;
  std::int32_t special_first = 0;  // Tokens that are never masked, [first, end).
  std::int32_t special_end = 0;
  double corrupt = 0;  // The share of tokens in corrupted spans. 0: none are.
  double mean = 3;     // The mean length of such a span.
  std::int32_t start = 0;
  std::optional<std::int32_t> sentinel;  // The token of the first span. The others are below it.
  std::uint64_t seed = 1;

  /// Asks for all options. The caller finishes the spec.
  static Result<TextOptions> read(DataSpec& spec);

  /// Returns a vocabulary that has all tokens of the options.
  std::int64_t least_vocabulary() const;
  /// Returns a vocabulary that has the tokens of padding, and of a decoder's beginning.
  std::int64_t least_with_padding() const;
  /// Returns whether some targets do not count.
  bool needs_ignored_targets() const {
    return documents != Documents::joined || mask > 0 || corrupt > 0;
  }
};

/// Consecutive tokens of a text.
struct Window {
  std::vector<std::int32_t> tokens;
  std::optional<std::int32_t> behind;  // The token behind them, if it is of the last document.
  /// Where each document ends in the window. The first begins with it, and the last ends with it.
  std::vector<std::int64_t> ends;
  std::int64_t second = 0;  // The beginning of the second of two texts. 0: there is one.
};

/// The inputs of a sample by name, and its targets. All are integers.
struct MadeSample {
  std::vector<std::pair<std::string_view, std::vector<std::int32_t>>> fields;
  std::vector<std::int32_t> target;

  /// Writes the fields that a shape has, and the targets.
  void write(const SampleShape& shape, const SampleSpans& to) const;
};

/// Returns the fields of a text: its tokens, what each may look at, its place in its document, and
/// its type: 1 in the second of two texts, else 0.
std::vector<Field> fields_of_text(std::int64_t context);
/// Returns those of a window, which is padded to the context. No target counts yet.
MadeSample sample_of_text(const Window& window, std::int64_t context, std::int32_t pad,
                          std::int32_t ignore);

/// Makes samples of windows. Any thread may call it.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  /// Returns the tokens of a window. The last one of a document may have fewer.
  virtual std::int64_t width() const = 0;
  /// Returns whether the token behind a window is a target, so that a text has to have one.
  virtual bool wants_next() const { return false; }
  /// Returns the fields of a sample, those that a model of one input takes first.
  virtual std::vector<Field> offers() const = 0;
  virtual Shape target() const = 0;
  virtual MadeSample make(const Window& window, const Place& place) const = 0;
};

/// Returns the random words of a position of a sample.
std::array<std::uint32_t, 4> position_words(std::uint64_t seed, const Place& place,
                                            std::uint32_t position);

/// Returns the length of a field that a model takes, or `fallback` if it takes no such field.
std::int64_t length_of(const DataNeeds& needs, std::string_view field, std::int64_t fallback);

/// Returns the maker that options ask for. `classes` is the number of tokens that may be drawn.
Result<std::unique_ptr<SampleMaker>> make_sample_maker(const TextOptions& options,
                                                       const DataNeeds& needs,
                                                       std::int64_t classes);
/// As above, for spans that a decoder restores (T5).
Result<std::unique_ptr<SampleMaker>> make_span_corrupter(const TextOptions& options,
                                                         const DataNeeds& needs,
                                                         std::int64_t classes);

/// Returns the fields of a text that is read and another that is written, as T5 takes them. Both
/// texts are cut to their lengths or padded. `start` comes before the written one.
struct PairForm {
  std::int64_t source = 0, target = 0;
  std::int32_t start = 0, pad = 0, ignore = 0;

  static PairForm of(const TextOptions& options, const DataNeeds& needs);

  std::vector<Field> offers() const;
  MadeSample make(std::vector<std::int32_t> read, std::vector<std::int32_t> written) const;
};

std::vector<std::string> names_of(const std::vector<Field>& fields);

/// Returns the shape of samples for a model: the fields that it takes of those that are offered.
SampleShape shape_for(const DataNeeds& needs, const std::vector<Field>& offered,
                      const Shape& target);

}  // namespace troupe::storage
