#include "actors/play/gradient_sum.h"

#include <algorithm>
#include <utility>

#include "actors/deferred_sends.h"
#include "models/train/packed_gradients.h"
#include "transport/links/edges.h"

namespace troupe::actors {

bool may_add_up_anyhow(const RunSpec& spec) {
  return spec.exactness == Exactness::samples && spec.staleness.lag == 0 &&
         std::ranges::all_of(spec.delays, [](int delay) { return delay == 0; });
}

void add_up(Stream& stream, const std::shared_ptr<transport::Adder>& adder, const RunSpecPtr& spec,
            HolderPlace place, const models::GradientShare& gradients,
            std::function<void(models::PartialSum)> take) {
  const auto stage = static_cast<std::size_t>(place.stage);
  const auto& sections = spec->sections[stage];
  const auto usual = spec->round(0, 1);
  auto parameters = models::Stage(*spec->model, spec->stages[stage], {}).parameters();
  auto packed = models::pack(stream, gradients, parameters, sections);
  // Each member must have a piece, even an empty one.
  packed.sizes.resize(holders_of(*usual, place.stage).size());
  once_done([adder, spec, place, groups = usual->groups, parameters = std::move(parameters),
             packed = std::move(packed), take = std::move(take)] {
    const auto& numbers = packed.numbers;
    // If the edge has ended, its on_end reports why.
    (void)adder
        ->add(numbers, packed.sizes,
              [spec, place, groups, parameters, packed, take] {
                if (!take) return;
                const auto number = static_cast<std::size_t>(place.holder);
                const auto& section = spec->sections[static_cast<std::size_t>(place.stage)][number];
                take(models::unpack(packed, number, parameters, section, groups));
              })
        .ok();
  });
}

}  // namespace troupe::actors
