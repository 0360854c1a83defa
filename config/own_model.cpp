#include "config/own_model.h"

#include <variant>

#include "config/model_kinds.h"
#include "config/schema/dotted.h"
#include "models/description/model_kind.h"

namespace troupe::config {

Diagnostic diagnostic_of(const models::Fault& fault, const Sources& sources) {
  const auto local = [&](const Position& position) { return sources.find(position).position; };
  const bool has_place = fault.at.position.column > 0;
  return {.key = "model.description",
          .message = (has_place ? "" : "model.description." + fault.at.path + ": ") +
                     models::message_of(fault, local),
          .position = fault.at.position};
}

void check_description(const Value& tree, const Sources& sources, Diagnostics& found) {
  const Value* description = value_at(tree, "model.description");
  if (!description) return;
  const auto read = models::ModelKind::read(*description);
  if (const auto* fault = std::get_if<models::Fault>(&read))
    return found.add(diagnostic_of(*fault, sources));
  const auto& kind = std::get<models::ModelKind>(read);
  if (!kind.presets().empty())
    found.add({.key = "model.description",
               .message = "only the descriptions that the program comes with have presets; give "
                          "the options under [model]",
               .position = description->find("preset")->position});
  const auto& name = kind.name();
  if (find_model_kind(name))
    found.add({.key = "model.description",
               .message = "model.name = \"" + name +
                          "\" in a description is the name of a kind that the program comes with; "
                          "choose another name",
               .position = description->find("model")->position});
}

}  // namespace troupe::config
