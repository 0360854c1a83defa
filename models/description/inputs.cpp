#include "models/description/inputs.h"

#include <string>

namespace troupe::models {
namespace {

constexpr std::int64_t most_size = 1 << 24;

std::string wanted_sizes(Flow::Kind kind) {
  switch (kind) {
    case Flow::Kind::tokens:
      return "tokens have one size: their number";
    case Flow::Kind::spans:
      return "spans have two sizes: [length, 2], the first and the end of what each row looks at; "
             "tokens have one size, and below";
    case Flow::Kind::rows:
    case Flow::Kind::images:
      break;
  }
  return "an input has 1 to 3 sizes: [width], [length, width] or [channels, height, width]";
}

Flow::Kind kind_of(const Description::Input& input, std::size_t rank) {
  if (input.has_integers) return input.below ? Flow::Kind::tokens : Flow::Kind::spans;
  return rank == 3 ? Flow::Kind::images : Flow::Kind::rows;
}

bool is_good_rank(Flow::Kind kind, std::size_t rank) {
  if (kind == Flow::Kind::tokens) return rank == 1;
  if (kind == Flow::Kind::spans) return rank == 2;
  return rank >= 1 && rank <= 3;
}

}  // namespace

Flow flow_of_input(const Description::Input& input, InputPlace where, Evaluation& at) {
  Flow flow;
  const Value shape = at.value(input.shape);
  if (at.fault) return flow;
  const auto& place = input.shape.place;
  const auto& sizes = *shape.list();
  flow.kind = kind_of(input, sizes.size());
  if (!is_good_rank(flow.kind, sizes.size())) {
    at.fail(place, wanted_sizes(flow.kind));
    return flow;
  }
  const bool may_vary = flow.kind == Flow::Kind::images && where == InputPlace::first;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto* size = sizes[i].integer();
    if (!size || *size < (may_vary && i > 0 ? 0 : 1) || *size > most_size) {
      at.fail(place,
              "a size of the input is an integer from 1 to 16777216; height and width of images "
              "may be 0, which means any, if they are the first input");
      return flow;
    }
    flow.shape.append(*size);
  }
  if (flow.kind == Flow::Kind::spans && flow.shape[1] != 2) at.fail(place, wanted_sizes(flow.kind));
  if (flow.kind == Flow::Kind::spans && where == InputPlace::first)
    at.fail(place,
            "the stream begins with the first input, and spans are no stream; declare "
            "tokens or numbers before them");
  if (!input.below) return flow;
  flow.below = at.integer(*input.below, "below");
  if (!at.fault && (flow.below < 1 || flow.below > std::int64_t{1} << 31))
    at.fail(input.below->place, "below is an integer from 1 to 2147483648");
  return flow;
}

}  // namespace troupe::models
