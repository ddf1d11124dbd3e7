"""Make a ranking model of an embedding model by giving it a head of random weights: for measuring speed, not for ranking.

    python bench/ranking_model.py all-minilm-l6-v2-q8_0.gguf ranker.gguf

Needs the `gguf` package. Everything but the kind of pooling and the head is as in the model.
"""

from __future__ import annotations

import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, PoolingType


def main(source: str, target: str) -> None:
    reader = GGUFReader(source)
    architecture = str(reader.fields["general.architecture"].contents())
    writer = GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", f"{architecture}.pooling_type"):
            continue
        inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], inner)
    writer.add_pooling_type(PoolingType.RANK)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    n_embd = int(reader.fields[f"{architecture}.embedding_length"].contents())
    head = np.random.default_rng(0).normal(0, 0.05, (1, n_embd)).astype(np.float32)
    writer.add_tensor("cls.output.weight", head, raw_dtype=GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} SOURCE TARGET")
    main(*sys.argv[1:])
