#pragma once

#include <string>
#include <vector>

#include "apps/report/report_page.h"

namespace troupe::apps {

/// Returns the steps of runs as comma-separated values (RFC 4180): a line for each step of each
/// run, and the columns run, step, loss, grad_norm, lr, rate, bubble, memory and validation_loss.
/// What is not known is empty. Numbers are in the shortest form that reads back equal.
std::string steps_csv(const std::vector<RunReport>& runs);

}  // namespace troupe::apps
