#!/usr/bin/env python3
"""Writes the table of the runtime's errors (code, name, description) from the toolkit's driver_types.h."""

import argparse
import re
import sys

# The descriptions that programs are known to search for. The others are the words of the enumerator.
WELL_KNOWN = {
    "cudaSuccess": "no error",
    "cudaErrorInvalidValue": "invalid argument",
    "cudaErrorMemoryAllocation": "out of memory",
    "cudaErrorInitializationError": "initialization error",
    "cudaErrorCudartUnloading": "driver shutting down",
    "cudaErrorInvalidConfiguration": "invalid configuration argument",
    "cudaErrorInsufficientDriver": "CUDA driver version is insufficient for CUDA runtime version",
    "cudaErrorCallRequiresNewerDriver": "API call is not supported in the installed CUDA driver",
    "cudaErrorInvalidDeviceFunction": "invalid device function",
    "cudaErrorNoDevice": "no CUDA-capable device is detected",
    "cudaErrorInvalidDevice": "invalid device ordinal",
    "cudaErrorDeviceUninitialized": "invalid device context",
    "cudaErrorNoKernelImageForDevice": "no kernel image is available for execution on the device",
    "cudaErrorPeerAccessAlreadyEnabled": "peer access is already enabled",
    "cudaErrorPeerAccessNotEnabled": "peer access has not been enabled",
    "cudaErrorInvalidResourceHandle": "invalid resource handle",
    "cudaErrorSymbolNotFound": "named symbol not found",
    "cudaErrorNotReady": "device not ready",
    "cudaErrorIllegalAddress": "an illegal memory access was encountered",
    "cudaErrorHostMemoryAlreadyRegistered": "part or all of the requested memory range is already mapped",
    "cudaErrorHostMemoryNotRegistered": "pointer does not correspond to a registered memory region",
    "cudaErrorLaunchFailure": "unspecified launch failure",
    "cudaErrorNotSupported": "operation not supported",
    "cudaErrorStreamCaptureUnsupported": "operation not permitted when stream is capturing",
    "cudaErrorStreamCaptureInvalidated": "operation failed due to a previous error during capture",
    "cudaErrorUnknown": "unknown error",
}


def words(name):
    text = re.sub(r"^cudaError", "", name)
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text).lower()


def enumerators(header):
    match = re.search(r"enum __device_builtin__ cudaError\s*\{(.*?)\n\}", header, re.S)
    if not match:
        sys.exit("driver_types.h: no 'enum cudaError' found; the toolkit's header has changed its form")
    body = re.sub(r"/\*.*?\*/", "", match.group(1), flags=re.S)
    return [(name, int(value, 0)) for name, value in re.findall(r"(cuda\w+)\s*=\s*(\w+)", body)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("header")
    parser.add_argument("output")
    arguments = parser.parse_args()
    with open(arguments.header, encoding="utf-8", errors="replace") as header:
        errors = enumerators(header.read())
    with open(arguments.output, "w", encoding="utf-8") as output:
        for name, value in sorted(errors, key=lambda error: error[1]):
            output.write(f'{{{value}, "{name}", "{WELL_KNOWN.get(name, words(name))}"}},\n')


if __name__ == "__main__":
    main()
