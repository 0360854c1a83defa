#pragma once

#include <cstddef>
#include <string>

#include "schedules/simulate/timeline.h"

namespace troupe::schedules {

/// Draws the timeline for a terminal of so many columns: a row for each device, and in it a block
/// for each pass, such as "B3" for the backward pass of micro-batch 3. A device that overlaps
/// passes has several rows. What is too long continues in further rows. With colours, blocks of
/// later stages of a device are lighter. The legend and the caption stand below.
std::string to_blocks(const Timeline& timeline, const std::string& caption, std::size_t columns,
                      bool has_colours);

}  // namespace troupe::schedules
