// CUDA's declarations under their real names: cuMemAlloc is the first version of the call and cuMemAlloc_v2 the second,
// instead of a macro that turns the one into the other. Included by interpose/ only, and for declarations only.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
// After those two: they would include them under other names.
#include <cublasLt.h>
#include <cublas_v2.h>
