#include "kernels/cuda/cudnn/library.h"

#include <cstddef>

#include "kernels/cuda/machine/shared_library.h"

namespace troupe::kernels::cudnn {
namespace {

// The ABI depends on the headers' major version.
const std::string file_name = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
constexpr std::size_t oldest = 91900;

std::string to_text(std::size_t version) {
  const auto part = [](std::size_t of) { return std::to_string(of); };
  return part(version / 10000) + "." + part(version / 100 % 100) + "." + part(version % 100);
}

Result<Library> load() {
  auto file = cuda::SharedLibrary::open(file_name);
  if (!file) return file.error();
  Library all;
  file->find("cudnnGetVersion", all.version);
  file->find("cudnnGetErrorString", all.text_of);
  file->find("cudnnGetLastErrorString", all.last_words);
  file->find("cudnnCreate", all.create);
  file->find("cudnnDestroy", all.destroy);
  file->find("cudnnSetStream", all.set_queue);
  file->find("cudnnBackendCreateDescriptor", all.create_descriptor);
  file->find("cudnnBackendDestroyDescriptor", all.destroy_descriptor);
  file->find("cudnnBackendSetAttribute", all.set_attribute);
  file->find("cudnnBackendGetAttribute", all.get_attribute);
  file->find("cudnnBackendFinalize", all.finalize);
  file->find("cudnnBackendExecute", all.execute);
  if (auto complete = file->has_all(); !complete) return complete.error();
  if (all.version() < oldest)
    return Error{file_name + ": is of version " + to_text(all.version()) + ", wanted " +
                 to_text(oldest) + " or later; install that"};
  return all;
}

}  // namespace

std::string Library::name() const { return "cuDNN " + to_text(version()); }

const Result<Library>& library() {
  static const Result<Library> loaded = load();
  return loaded;
}

}  // namespace troupe::kernels::cudnn
