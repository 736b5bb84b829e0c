// dlsym, which every library uses and we must not disturb: what it finds depends on the code that calls it (RTLD_NEXT,
// RTLD_DEFAULT, $ORIGIN), so the real one is entered by a jump and sees our caller as its own. Only exact names of our
// table take the way through DlsymOfEntry. No lock is taken, nothing is read from the environment.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "interpose/core/process.h"
#include "interpose/core/real_dlsym.h"
#include "interpose/hooks/resolve.h"

namespace ledger::hooks {
namespace {

bool MayBeEntry(const char* name) {
  return name[0] == 'c' && name[1] == 'u' &&
         ((name[2] >= 'A' && name[2] <= 'Z') || std::strncmp(name + 2, "da", 2) == 0 ||
          std::strncmp(name + 2, "blas", 4) == 0);
}

// Entered by a jump: the return address is the one of dlsym's caller.
void* DlsymOfEntry(void* handle, const char* name) {
  const void* const caller = __builtin_return_address(0);
  const DlsymFunction real = RealDlsym();
  Entry entry;
  FindSymbol(name, entry);
  void* const found = real(handle, name);
  if (found == nullptr) return nullptr;
  if (!IsOurs(found)) {
    // In the global scope that is a library preloaded in front of us, whose own look-up leads here.
    if (handle == RTLD_DEFAULT || IsVendorTool(caller)) return found;
    return Wrap(entry, found);
  }
  // Our own export: there only if the real one is, too. Programs ask this to learn whether CUDA is loaded.
  if (RealInScope(entry, caller)) return found;
  return real(RTLD_NEXT, name);  // null, with the loader's message
}

void* NoDlsym(void*, const char*) { return nullptr; }

}  // namespace

// Where a call of dlsym goes on.
extern "C" [[gnu::visibility("hidden"), gnu::used]] DlsymFunction LedgerDlsymTarget(void* handle, const char* name) {
  const DlsymFunction real = RealDlsym();
  if (real == nullptr) [[unlikely]]
    return NoDlsym;
  // RTLD_NEXT is for libraries that stand in front of the real one themselves; we are in their chain already.
  if (name == nullptr || handle == RTLD_NEXT || !MayBeEntry(name)) [[likely]]
    return real;
  Entry entry;
  if (ProcessState().load(std::memory_order_relaxed) == State::kOff || !FindSymbol(name, entry)) return real;
  return DlsymOfEntry;
}

}  // namespace ledger::hooks

#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call LedgerDlsymTarget
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size dlsym, . - dlsym
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .p2align 2
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    bti c
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    bl LedgerDlsymTarget
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    br x16
    .cfi_endproc
    .size dlsym, . - dlsym
)");
#else
#error "dlsym needs a jump that keeps the caller's return address; add one for this processor"
#endif
