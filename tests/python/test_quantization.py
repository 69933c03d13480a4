"""The gate, asked with every kind of configuration."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import weightcache
from weightcache import quantization

BLOCKS = {"quant_method": "fp8", "weight_block_size": [128, 128]}


def test_the_verified_methods_are_told():
    assert set(quantization.verified()) >= {"", "fp8"}


@pytest.mark.parametrize("place", ["publish", "attach"])
def test_unquantized_and_block_wise_are_allowed(place):
    quantization.check("", place=place)
    quantization.check(None, None, place=place)
    for config in (
        BLOCKS,
        SimpleNamespace(**BLOCKS),
        {"quantization_config": BLOCKS},
        SimpleNamespace(model_type="llama", quantization_config=BLOCKS),
    ):
        quantization.check(None, config, place=place)
        quantization.check("fp8", config, place=place)


def test_a_configuration_of_transformers_is_understood():
    from transformers import FineGrainedFP8Config, LlamaConfig

    quantization.check(None, FineGrainedFP8Config())
    quantization.check(None, LlamaConfig())
    with pytest.raises(weightcache.UnsupportedQuantization, match="weight_block_size"):
        quantization.check("fp8", LlamaConfig())


@pytest.mark.parametrize("config", [
    {"quant_method": "fp8"}, {"quant_method": "gptq", "bits": 4}, {"quant_method": "awq"},
    {**BLOCKS, "format_ue8m0": True}, {**BLOCKS, "is_fp4_experts": True},
    {"quant_method": "FP8", "weight_block_size": [128, 128]}])  # fmt: skip
@pytest.mark.parametrize("place", ["publish", "attach"])
def test_everything_else_is_refused_with_the_ways_out(config, place):
    with pytest.raises(weightcache.UnsupportedQuantization) as caught:
        quantization.check(None, config, place=place)
    told = str(caught.value)
    assert place in told and f'"{config["quant_method"]}"' in told
    assert "verified methods" in told and "ways out" in told
    assert isinstance(caught.value, weightcache.Unsupported)
