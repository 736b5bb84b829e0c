// NVTX domains and registered strings: what their handles stand for.
//
// An application gets its handles from us, unless another NVTX tool is served behind us (nvtx_chain.h): then it gets
// the other tool's, because they also reach that tool by ways that do not pass here (the payload and synchronisation
// extensions), and we look up what they mean.
//
// Everything lies in one region of fixed size that is reserved at first use and never given back: a handle stays valid
// after its domain was destroyed, and a run of any length cannot make the recorder grow. All functions are lock-free.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/hooks/nvtx_types.h"

namespace ledger::nvtx {

struct Domain {
  std::string_view name;  // empty: the default domain
  std::uint32_t index;    // 0: the default domain
  bool is_nccl;           // its payloads are NCCL's
};

// The domain of that name: the same one for every library that asks, as NVTX's domains go by name. The default domain
// when there is no room for another one (counted).
const Domain& DomainNamed(std::string_view name);

// What a handle stands for; the default domain for a handle that is null or not known.
const Domain& DomainOf(nvtxDomainHandle_t handle);
nvtxDomainHandle_t HandleOf(const Domain& domain);

// Keeps a copy of `text`. Null when there is no room (counted).
nvtxStringHandle_t RegisterString(std::string_view text);
// The text of a registered string; empty for a handle that is null or not known.
std::string_view RegisteredString(nvtxDomainHandle_t domain, nvtxStringHandle_t handle);

// Did we give this handle out ourselves? Another tool must not see it.
bool IsOurHandle(const void* handle);

// Notes what another tool's handle stands for.
void AliasDomain(nvtxDomainHandle_t foreign, const Domain& domain);
void AliasString(nvtxDomainHandle_t domain, nvtxStringHandle_t foreign, nvtxStringHandle_t ours);

}  // namespace ledger::nvtx
