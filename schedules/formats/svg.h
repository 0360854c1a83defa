#pragma once

#include <string>

#include "schedules/simulate/timeline.h"

namespace troupe::schedules {

/// Draws the timeline as a self-contained SVG. Each device has a row with idle time hatched,
/// micro-batch numbers where they fit, and reductions (bars) and updates (marks) below. Colours
/// show kinds, are safe for the colour-blind, and are lighter for later stages of a device. The
/// caption stands below. The picture follows the viewer's light or dark mode.
std::string to_svg(const Timeline& timeline, const std::string& caption);

}  // namespace troupe::schedules
