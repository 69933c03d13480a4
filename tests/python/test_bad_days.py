"""What goes wrong around modules and tensors, and what it costs."""

from __future__ import annotations

import gc
import threading

import pytest
import torch
from conftest import eventually
from torch import nn

import weightcache
import weightcache.torch as wt

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import weightcache
weights = weightcache.load(sys.argv[1], device="cpu", framework="np")
assert weights["t.f32"].shape == (4, 8)
for make in (lambda: weightcache.attach("types", framework="pt"), lambda: weightcache.torch):
    try:
        make()
    except (weightcache.Unsupported, ImportError) as error:
        assert "torch" in str(error), error
    else:
        raise AssertionError
"""


def test_without_torch_the_rest_works_and_says_what_it_needs(daemon, every_type, run):
    run(WITHOUT_TORCH, every_type[0])


def test_a_gpu_that_this_torch_does_not_know_is_an_error_with_a_name(daemon, every_type):
    with pytest.raises(weightcache.WeightcacheError) as caught:
        weightcache.load(every_type[0], device="cuda:0")
    assert "cuda" in str(caught.value).lower() or "GPU" in str(caught.value)


FORKED = """
import os, torch, weightcache, weightcache.torch
model = torch.nn.Linear(8, 8)
weightcache.torch.publish(model, "m", source_id="m")
expected = model(torch.ones(8)).detach()
child = os.fork()
if child == 0:
    with torch.device("meta"):
        anew = torch.nn.Linear(8, 8)
    weightcache.torch.load_model(anew, "m")
    same = torch.equal(model(torch.ones(8)), expected) and torch.equal(
        anew(torch.ones(8)), expected)
    os._exit(0 if same else 1)
assert os.waitpid(child, 0)[1] == 0
assert torch.equal(model(torch.ones(8)), expected)
"""


def test_a_forked_worker_computes_with_the_parents_module_and_with_its_own(daemon, run):
    run(FORKED)


def test_two_threads_that_publish_the_same_content_copy_it_once(daemon):
    torch.manual_seed(5)
    first = nn.Linear(256, 256)
    second = nn.Linear(256, 256)
    second.load_state_dict(first.state_dict())
    outcomes: list[str] = []

    def work(model: nn.Module) -> None:
        outcomes.append(wt.publish(model, "m", source_id="m").outcome)

    threads = [threading.Thread(target=work, args=(model,)) for model in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["published", "resident"]
    assert torch.equal(first.weight, second.weight)


def test_a_module_of_an_entry_that_was_evicted_goes_on(daemon):
    model = nn.Linear(4, 4)
    expected = model(torch.ones(4)).detach()
    wt.publish(model, "m", source_id="m")
    weightcache.Connection().evict("m", force=True)
    assert torch.equal(model(torch.ones(4)), expected)
    with pytest.raises(weightcache.NotFound):
        wt.load_model(nn.Linear(4, 4), "m")


def test_a_set_of_ranks_is_published_together(daemon):
    models = [nn.Linear(4, 4) for _ in range(2)]
    threads = [
        threading.Thread(
            target=wt.publish, args=(model, "m"),
            kwargs={"source_id": "m", "rank": rank, "world": 2,
                    "partition": {"tensor": {"rank": rank, "size": 2}}},
        )
        for rank, model in enumerate(models)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank, model in enumerate(models):
        other = nn.Linear(4, 4)
        wt.load_model(other, "m", rank=rank, world=2)
        assert torch.equal(other.weight, model.weight)


def test_a_published_module_can_be_published_again_and_trained_in_place(daemon):
    model = nn.Linear(4, 4)
    wt.publish(model, "a", source_id="a")
    loss = model(torch.ones(4)).sum()
    loss.backward()
    with torch.no_grad():
        model.weight -= model.weight.grad
    changed = model.weight.detach().clone()  # with a graph it would hold the model
    wt.publish(model, "b", source_id="b")
    other = nn.Linear(4, 4)
    wt.load_model(other, "b")
    assert torch.equal(other.weight, changed)
    wt.load_model(other, "a")
    assert not torch.equal(other.weight, changed)
    del model, other, loss
    gc.collect()
    eventually(lambda: daemon.leases() == 0, "the leases have ended")
