#include "kernels/cuda/cudnn/engines.h"

#include <exception>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "kernels/cuda/cudnn/operation_graph.h"

namespace troupe::kernels::cudnn {
namespace {

constexpr std::size_t most_ways = 64;

/// cuDNN tells for each engine that it has asked where that gave up, and then from where that was
/// called: the first reason of each is the one that matters.
std::string reasons_in(const std::string& said) {
  static const std::regex form(R"("engineId":(\d+)[^\n]*\n[^\n]*Reason: (.*?)(?: at: [^\n]*)?\n)");
  std::map<std::string, std::set<std::string>> engines;  // That give the same reason.
  for (std::sregex_iterator match(said.begin(), said.end(), form), end; match != end; ++match)
    engines[(*match)[2].str()].insert((*match)[1].str());
  std::string all;
  for (const auto& [reason, numbers] : engines) {
    all += (all.empty() ? "" : "; ") + reason;
    for (const auto& number : numbers) all += " (engine " + number + ")";
  }
  return all.empty() ? "cuDNN does not say why" : all;
}

std::string version() {
  const auto number = cudnnGetVersion();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

/// The ways to compute a graph that cuDNN advises, best first.
std::vector<Descriptor> ways_of(const OperationGraph& graph, const Gpu& gpu) {
  Descriptor advice(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  advice.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor());
  advice.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  advice.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, gpu.properties());
  advice.finalize();
  return advice.parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most_ways);
}

std::int64_t engine_of(const Descriptor& way) {
  const auto engine = way.parts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  return engine.at(0).integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
}

/// Calls `use` with the ways to compute a graph, of which there is one at least.
template <class T, class Use>
Result<T> with_ways(const Graph& graph, const Gpu& gpu, Use use) try {
  const OperationGraph operations(graph);
  (void)last_words();  // What was said before was of something else.
  const auto ways = ways_of(operations, gpu);
  if (ways.empty())
    return Error{"no engine of cuDNN " + version() + " takes this graph of " +
                 std::to_string(graph.operations().size()) +
                 " operations: " + reasons_in(last_words())};
  return use(ways);
} catch (const std::exception& refusal) {
  return Error{refusal.what()};
}

}  // namespace

Result<std::vector<std::int64_t>> engines_for(const Graph& graph, const Gpu& gpu) {
  return with_ways<std::vector<std::int64_t>>(graph, gpu, [](const std::vector<Descriptor>& ways) {
    std::vector<std::int64_t> engines;
    engines.reserve(ways.size());
    for (const auto& way : ways) engines.push_back(engine_of(way));
    return engines;
  });
}

Result<Plan> plan_for(const Graph& graph, const Gpu& gpu) {
  return with_ways<Plan>(graph, gpu, [&](const std::vector<Descriptor>& ways) {
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, ways.front());
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, gpu.properties());
    plan.finalize();
    return Plan{.engine = engine_of(ways.front()),
                .workspace = plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)};
  });
}

}  // namespace troupe::kernels::cudnn
