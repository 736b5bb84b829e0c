// The memory that a program lends cuBLAS to work in. Nothing else tells a workspace from the tensors around it: a
// caching allocator hands it out like any other block.
#include <atomic>

#include "interpose/core/recorder.h"
#include "interpose/core/workspace_table.h"
#include "interpose/hooks/device.h"
#include "interpose/hooks/hooks.h"

namespace ledger::hooks {
namespace {

constinit std::atomic<std::uint32_t> g_cublas_text{0};
constinit std::atomic<std::uint32_t> g_cublaslt_text{0};

// The interned text, which keeps its id in a forked child.
std::uint32_t TextOnce(std::atomic<std::uint32_t>& id, std::string_view text) {
  if (id.load(std::memory_order_relaxed) == 0) [[unlikely]]
    id.store(InternText(text), std::memory_order_relaxed);
  return id.load(std::memory_order_relaxed);
}

void NameWorkspace(std::atomic<std::uint32_t>& text_id, std::string_view text, const void* workspace,
                   std::size_t bytes) {
  if (workspace == nullptr || bytes == 0 || !Active()) return;
  const auto address = reinterpret_cast<std::uint64_t>(workspace);
  if (!NewWorkspace(address)) return;
  const ErrnoSaver errno_saver;
  record::Name name = {};
  name.commit = {static_cast<std::uint16_t>(record::Kind::kName), record::Layer::kRuntime, CurrentDevice(), 0};
  name.address = address;
  name.bytes = bytes;
  name.text = TextOnce(text_id, text);
  name.category = record::NameCategory::kWorkspace;
  Append(name);
}

}  // namespace

cublasStatus_t CublasSetWorkspace(const Call<decltype(&::cublasSetWorkspace_v2)>& call, cublasHandle_t handle,
                                  void* workspace, std::size_t bytes) {
  const cublasStatus_t status = call.real(handle, workspace, bytes);
  if (status == CUBLAS_STATUS_SUCCESS) NameWorkspace(g_cublas_text, "cuBLAS workspace", workspace, bytes);
  return status;
}

cublasStatus_t CublasLtMatmul(const Call<decltype(&::cublasLtMatmul)>& call, cublasLtHandle_t handle,
                              cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const cublasStatus_t status = call.real(handle, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                                          d_layout, algorithm, workspace, workspace_bytes, stream);
  if (status == CUBLAS_STATUS_SUCCESS) NameWorkspace(g_cublaslt_text, "cuBLASLt workspace", workspace, workspace_bytes);
  return status;
}

}  // namespace ledger::hooks
