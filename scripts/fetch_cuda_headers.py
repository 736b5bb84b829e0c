"""Gets the headers of the CUDA toolkit, NCCL and cuDNN out of NVIDIA's wheels on PyPI: for a machine without a toolkit.

usage: fetch_cuda_headers.py TARGET     (fills TARGET/include; does nothing where that is complete)

The wheels hold whole libraries. One after the other is downloaded, its headers are unpacked, and it is deleted: the disk
holds one at a time, at most 0.5 GB.
"""

import pathlib
import subprocess
import sys
import tempfile
import zipfile

# One release, the one that the code is written against. A newer PyTorch needs no newer headers: what it imports is read
# from its own libraries.
WHEELS = [
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-cupti==13.0.85",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-profiler-api==13.0.85",
    "nvidia-nvtx==13.0.85",
    "nvidia-nvjitlink==13.0.88",
    "nvidia-cublas==13.1.0.3",
    "nvidia-cufft==12.0.0.61",
    "nvidia-curand==10.4.0.35",
    "nvidia-cusolver==12.0.4.66",
    "nvidia-cusparse==12.6.3.3",
    "nvidia-cudnn-cu13==9.19.0.56",
    "nvidia-nccl-cu13==2.28.9",
]


def download(wheel, folder):
    """Returns the path of the downloaded wheel."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir",
               "--only-binary=:all:", "--dest", folder, wheel]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"fetch_cuda_headers.py: error: pip could not download {wheel}\n"
                 "  Install a CUDA toolkit with the headers of NCCL and cuDNN, and set CUDA_HOME.")
    (path,) = pathlib.Path(folder).glob("*.whl")
    return path


def unpack_headers(path, include):
    """Unpacks everything below a folder `include` of the wheel; returns the number of files."""
    count = 0
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            _, found, rest = name.partition("/include/")
            if not found or not rest or rest.endswith("/"):
                continue
            target = include / rest
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
            count += 1
    return count


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    complete = target / "complete"
    if complete.exists() and complete.read_text().split() == WHEELS:
        return
    for number, wheel in enumerate(WHEELS, 1):
        print(f"== CUDA headers {number}/{len(WHEELS)}: {wheel}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            if unpack_headers(download(wheel, folder), target / "include") == 0:
                sys.exit(f"fetch_cuda_headers.py: error: {wheel} has no headers; expected a folder named include in it")
    complete.write_text("\n".join(WHEELS) + "\n")


if __name__ == "__main__":
    main()
