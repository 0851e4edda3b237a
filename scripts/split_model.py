#!/usr/bin/env python3
"""Cuts the built-in model's weights for packaging: models/default/part-N/weights.part, one for each crate that carries a part.

    python3 scripts/split_model.py && cargo package --workspace

A build in the repository cuts the parts itself (build.rs) and never reads these files.
"""

from pathlib import Path

MODEL = Path(__file__).resolve().parent.parent / "models/default"
LIMIT = 10 * 1024 * 1024  # What the registry takes, compressed; weights hardly shrink.


def main() -> None:
    weights = (MODEL / "model.safetensors").read_bytes()
    crates = sorted(MODEL.glob("part-*"))
    size = -(-len(weights) // len(crates))
    if size > LIMIT - 64 * 1024:
        raise SystemExit(f"a part has {size} bytes, the registry takes {LIMIT}: the model needs more parts than {len(crates)}")
    for number, crate in enumerate(crates):
        (crate / "weights.part").write_bytes(weights[number * size : (number + 1) * size])
    print(f"{len(crates)} parts of {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
