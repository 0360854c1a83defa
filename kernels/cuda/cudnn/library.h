#pragma once

#include <cudnn_graph.h>

#include <string>

#include "core/result.h"

namespace troupe::kernels::cudnn {

/// The functions of cuDNN that this program uses.
struct Library {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) text_of = nullptr;
  decltype(&cudnnGetLastErrorString) last_words = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_queue = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  std::string name() const;  // "cuDNN 9.19.0"
};

/// Loads the library on the first call. Rejects versions older than the oldest tested one.
const Result<Library>& library();

}  // namespace troupe::kernels::cudnn
