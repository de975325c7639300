"""Pretrained transformers and word vectors give the same results on a GPU as on the CPU."""

from collections import defaultdict
from dataclasses import replace

import pytest
import torch
from on_gpu import assert_close, certain, loss_and_gradients, trainer_on
from pretend_gpu import PretendGPU
from small import SMALL_ENCODER, changed, log_of, small_config, train
from tiny_bert import make_bert
from tiny_vectors import make_vectors
from torch.utils._python_dispatch import TorchDispatchMode

from mh4.data.conllu import read_conllu
from mh4.models.transformer_config import TransformerConfig
from mh4.parsers.registry import load
from mh4.training import trainer
from mh4.training.treebanks import read_gold

# Waits per step: for the scores, the report of the previous step and, inside the library transformers, the mask.
MOST_WAITS = {"transformer": 3, "bilstm": 2}


@pytest.fixture(scope="module", params=["fine-tuned", "frozen", "vectors"])
def config(request, small_treebanks, tmp_path_factory):
    sentences = read_gold(small_treebanks[0])
    if request.param == "vectors":
        words = [form for sentence in sentences for form in sentence.forms][::2]
        path = make_vectors(tmp_path_factory.mktemp("vectors") / "v.vec", words)
        return small_config("mst", max_steps=2, evaluation_steps=2, vectors=str(path))
    texts = [sentence.text for sentence in sentences]
    bert = make_bert(tmp_path_factory.mktemp("bert") / "tiny", texts)
    sizes = {name: own for name, own in vars(SMALL_ENCODER).items() if name != "kind"}
    own = {"pretrained": str(bert), "encoder_layers": 2, "encoder_freeze": request.param == "frozen"}
    return replace(small_config("mst", max_steps=2, evaluation_steps=2), encoder=TransformerConfig(**sizes, **own))


class Types(TorchDispatchMode):
    """Records the dtypes of the results of each operation."""

    def __init__(self):
        super().__init__()
        self.of = defaultdict(set)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, tuple | list) and result else result
        self.of[func.overloadpacket.__name__].add(getattr(first, "dtype", None))
        return result


def undropped(config):
    """Return the configuration without dropout inside a transformer."""
    return changed(config, encoder_dropout=0.0) if config.encoder.kind == "transformer" else config


def test_trains_and_parses_like_the_cpu(config, gpu, small_treebanks, tmp_path):
    train(*small_treebanks, tmp_path / "m", config, device="cuda")
    dev = list(read_conllu(small_treebanks[1]))
    ours, theirs = (load(tmp_path / "m", device=device).predict(dev) for device in ("cuda", "cpu"))
    assert [one.tree[0].tolist() for one in ours] == [one.tree[0].tolist() for one in theirs]


def test_losses_and_gradients_are_those_of_the_cpu(config, gpu, small_treebanks, tmp_path):
    own = certain(undropped(config))
    on_cpu, on_gpu = (loss_and_gradients(device, own, small_treebanks, tmp_path) for device in ("cpu", "cuda"))
    assert_close(on_gpu, on_cpu, gpu.tolerance)


def test_in_half_precision_it_comes_to_nearly_the_same(config, gpu, small_treebanks, tmp_path):
    if getattr(config.encoder, "encoder_freeze", False):
        pytest.skip("its states are computed outside of training")
    logs = []
    for precision in ("fp32", "bf16"):
        own = certain(undropped(replace(config, training=replace(config.training, precision=precision))))
        train(*small_treebanks, tmp_path / precision, own, device="cuda")
        logs.append([line["loss"] for line in log_of(tmp_path / precision)])
    assert logs[0] == pytest.approx(logs[1], rel=0.05)


def test_a_cpu_with_instructions_for_bfloat16_tunes_with_them(config, small_treebanks, tmp_path, monkeypatch):
    if getattr(config.encoder, "encoder_freeze", True):
        pytest.skip("no transformer, or its states are computed outside of training")
    monkeypatch.setattr(trainer, "multiplies_bfloat16", lambda device: device.type == "cpu")
    own = certain(replace(config, training=replace(config.training, precision="bf16")))
    with Types() as types:
        train(*small_treebanks, tmp_path / "m", own, device="cpu")
    assert torch.bfloat16 in types.of["addmm"]
    assert types.of["_scaled_dot_product_flash_attention_for_cpu"] == {torch.float32}
    assert load(tmp_path / "m", device="cpu").predict(list(read_conllu(small_treebanks[1])))


def test_a_step_waits_for_little(config, small_treebanks, tmp_path):
    with PretendGPU() as gpu:
        trainer = trainer_on("cuda", config, small_treebanks, tmp_path)
        first, *others = trainer.batches(0)[:3]
        trainer.step(*trainer.prepare(first))
        gpu.waits.clear()
        for indices in others:
            trainer.step(*trainer.prepare(indices))
        assert sum(gpu.waits.values()) <= MOST_WAITS[config.encoder.kind] * len(others), gpu.waits
