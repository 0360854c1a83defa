#include "kernels/cuda/cudnn/engines.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "kernels/cuda/cudnn/library.h"

namespace troupe::kernels::cudnn {
namespace {

constexpr std::size_t most_ways = 64;

/// Extracts each engine's reason from cuDNN's messages. cuDNN reports where an engine gave up and
/// then its callers, so the first reason of each engine is the relevant one.
std::string reasons_in(const std::string& said) {
  static const std::regex form(R"("engineId":(\d+)[^\n]*\n[^\n]*Reason: (.*?)(?: at: [^\n]*)?\n)");
  std::map<std::string, std::set<std::string>> engines;  // Keyed by reason.
  for (std::sregex_iterator match(said.begin(), said.end(), form), end; match != end; ++match)
    engines[(*match)[2].str()].insert((*match)[1].str());
  std::string all;
  for (const auto& [reason, numbers] : engines) {
    all += (all.empty() ? "" : "; ") + reason;
    for (const auto& number : numbers) all += " (engine " + number + ")";
  }
  return all.empty() ? "cuDNN does not say why" : all;
}

std::int64_t engine_of(const Descriptor& way) {
  const auto engine = way.parts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  return engine.at(0).integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
}

/// Returns whether an engine gives equal bits each time and sums in fp32.
bool is_wanted(const Descriptor& way) {
  const auto engine = way.parts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  const auto notes = engine.at(0).values<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::ranges::none_of(notes, [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  });
}

/// Returns cuDNN's suggested configurations for a graph, best first. Throws if there is none.
std::vector<Descriptor> ways_of(const Graph& graph, const OperationGraph& operations,
                                const Gpu& gpu) {
  (void)last_words();  // Discard messages about earlier calls.
  Descriptor advice(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  advice.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations.descriptor());
  advice.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  gpu.tell_advice(advice);
  advice.finalize();
  std::vector<Descriptor> ways;
  for (auto& way :
       advice.parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most_ways))
    if (is_wanted(way)) ways.push_back(std::move(way));
  if (ways.empty())
    throw NotSupported("no engine of " + library()->name() + " takes this graph of " +
                       std::to_string(graph.operations().size()) +
                       " operations: " + reasons_in(last_words()));
  return ways;
}

std::vector<std::int64_t> numbers_of(const std::vector<Term>& terms) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(terms.size());
  for (const Term term : terms) numbers.push_back(OperationGraph::number_of(term));
  return numbers;
}

}  // namespace

Result<std::vector<std::int64_t>> engines_for(const Graph& graph, const Gpu& gpu) try {
  const OperationGraph operations(graph, gpu);
  std::vector<std::int64_t> engines;
  for (const auto& way : ways_of(graph, operations, gpu)) engines.push_back(engine_of(way));
  return engines;
} catch (const std::exception& refusal) {
  return Error{refusal.what()};
}

Plan::Plan(OperationGraph operations, Descriptor way, Descriptor plan)
    : operations_(std::move(operations)),
      way_(std::move(way)),
      plan_(std::move(plan)),
      engine_(engine_of(way_)),
      workspace_(plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

Plan Plan::make(const Graph& graph, const Gpu& gpu) {
  OperationGraph operations(graph, gpu);
  std::string reason;
  for (auto& way : ways_of(graph, operations, gpu)) {
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, way);
    gpu.tell_plan(plan);
    try {
      plan.finalize();
    } catch (const WayFailed& refusal) {
      if (reason.empty()) reason = refusal.what();
      continue;
    }
    Plan made(std::move(operations), std::move(way), std::move(plan));
    made.given_ = numbers_of(graph.given());
    made.made_ = numbers_of(graph.made());
    return made;
  }
  throw NotSupported(reason);
}

Result<Plan> plan_for(const Graph& graph, const Gpu& gpu) try {
  return Plan::make(graph, gpu);
} catch (const std::exception& refusal) {
  return Error{refusal.what()};
}

void Plan::run(const Gpu& gpu, std::span<const void* const> given, std::span<void* const> made,
               void* workspace, cudaStream_t queue) const {
  assert(given.size() == given_.size() && made.size() == made_.size());
  std::vector<std::int64_t> numbers = given_;
  numbers.insert(numbers.end(), made_.begin(), made_.end());
  std::vector<void*> places;
  places.reserve(numbers.size());
  for (const void* place : given) places.push_back(const_cast<void*>(place));  // Read only.
  places.insert(places.end(), made.begin(), made.end());
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(numbers));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(places));
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check(library()->set_queue(gpu.handle(), queue));
  check(library()->execute(gpu.handle(), plan_.raw(), pack.raw()));
}

}  // namespace troupe::kernels::cudnn
