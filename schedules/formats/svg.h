#pragma once

#include <string>

#include "schedules/simulate/timeline.h"

namespace troupe::schedules {

/// The timeline as a picture, a file of its own that asks for nothing: a row for each device, a
/// colour for each kind that the colour-blind can tell too, lighter for the later stages of a
/// device, micro-batch numbers where they fit, reductions as bars and updates as marks under the
/// row, idle time hatched, and the caption below. Follows the viewer's choice of light or dark.
std::string to_svg(const Timeline& timeline, const std::string& caption);

}  // namespace troupe::schedules
