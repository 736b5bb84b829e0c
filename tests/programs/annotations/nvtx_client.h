// What each NVTX client library of the tests can do. Every library is compiled from nvtx_client.cc and has a state of
// NVTX of its own, as the libraries of a real process have.
#pragma once

#include <cstdint>

struct NvtxClient {
  int (*push)(const char* name);
  int (*push_wide)(const wchar_t* name);
  int (*pop)();
  void (*mark)(const char* name);
  std::uint64_t (*start)(const char* name);
  void (*end)(std::uint64_t id);
  // In a domain: by a registered string, narrow or wide, and with a number.
  void* (*domain)(const char* name);
  void* (*domain_wide)(const wchar_t* name);
  void* (*register_string)(void* domain, const char* text);
  void* (*register_wide_string)(void* domain, const wchar_t* text);
  int (*domain_push)(void* domain, void* string, double number);
  int (*domain_push_text)(void* domain, const char* text, std::uint64_t number);
  int (*domain_pop)(void* domain);
  std::uint64_t (*domain_start)(void* domain, const char* text);
  void (*domain_end)(void* domain, std::uint64_t id);
  void (*domain_mark)(void* domain, const char* text, std::uint64_t number);
  void (*domain_destroy)(void* domain);
  // An operation as NCCL describes it.
  int (*nccl_push)(void* domain, void* string, std::uint64_t schema, std::uint64_t bytes);
  void (*name_thread)(std::uint32_t thread, const char* name);
};

extern "C" {
const NvtxClient* EarlyNvtxClient();
const NvtxClient* LinkedNvtxClient();
const NvtxClient* LocalNvtxClient();
}
