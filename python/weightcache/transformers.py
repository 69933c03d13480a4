"""Transformers fed from the cache.

    model = weightcache.transformers.from_pretrained(AutoModelForCausalLM, path, device="cuda:0")
    with weightcache.transformers.enabled():        # unmodified from_pretrained inside
        encoder = SentenceTransformer(path)

The loading is Transformers' own: configuration, renames, packed experts, buffers that no file
holds, tied weights, quantizers. Only the bytes come from elsewhere: tensors that are resident, in
place, instead of files that are read; and without the warm-up of the allocator, which would take
the model's size again. What Transformers leaves as it is stays shared; what it converts is a copy
of this process's own. ``model.weightcache`` is a :class:`Report` of both.

``from_pretrained(..., published=NAME)`` takes the other road: the finished module, as Transformers
left it, is attached whole, and nothing is converted or made again; whoever asks first makes and
publishes it.

Where the cache can't serve, Transformers reads from disk as ever, after one warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any

from weightcache import _structs as structs
from weightcache import quantization as gate
from weightcache._library import lib, read
from weightcache._policy import Fallback, OnMiss, check_miss, settle_unavailable, switched_off
from weightcache._progress import Report as Progress
from weightcache.attachment import Attachment, attach
from weightcache.connection import device_text
from weightcache.disk import checkpoint_tensors
from weightcache.errors import (
    UNAVAILABLE,
    AlreadyExists,
    InvalidArgument,
    Mismatch,
    NotFound,
    Unsupported,
    WeightcacheError,
)
from weightcache.loading import load

__all__ = ["Report", "enabled", "from_pretrained"]


@dataclass(frozen=True)
class Report:
    """Where a model's weights came from; ``model.weightcache``.

    ``loaded_from``: ``"resident"``, ``"loaded"`` (by this call), ``"waited"`` (for another process
    that loaded them), ``"disk"`` (by Transformers, without the cache, for this ``reason``).
    ``shared_bytes`` of the model lie in the cache's memory, ``copied_bytes`` in this process's:
    what Transformers converted, as another dtype or packed experts.
    """

    loaded_from: str
    reason: BaseException | str = ""
    name: str = ""
    generation: int = 0
    device: str = ""
    shared_bytes: int = 0
    copied_bytes: int = 0
    seconds: float = 0.0


@dataclass
class _Session:
    """What one ``enabled()`` asked for."""

    on_miss: OnMiss = "load"
    on_unavailable: Fallback = "load"
    options: dict[str, Any] = field(default_factory=dict)
    published: str | None = None
    attached: bool = False  # the module that is being loaded is whole already
    pending: dict[str, Any] | None = None  # how it is to be published when it is


_active: ContextVar[_Session | None] = ContextVar("weightcache_transformers", default=None)
_serving: ContextVar[bool] = ContextVar("weightcache_transformers_serving", default=False)


def from_pretrained(
    model_class: Any,
    source: str | os.PathLike[str],
    *arguments: Any,
    device: Any = None,
    name: str | None = None,
    published: str | None = None,
    on_miss: OnMiss = "load",
    on_unavailable: Fallback = "load",
    wait: float | None = None,
    progress: bool | Callable[[Progress], None] = False,
    socket: str | os.PathLike[str] | None = None,
    **keywords: Any,
) -> Any:
    """``model_class.from_pretrained(source, ...)`` with resident weights.

    ``model_class``: any class of Transformers that has ``from_pretrained``. ``device``: one device
    for the whole model, as ``device_map`` would say it; neither: the CPU, as in Transformers.
    Everything else is Transformers'. What is not resident is loaded into the cache first
    (``on_miss``; ``"wait"`` for somebody else's load, ``"fail"`` with :class:`NotFound`). Where the
    cache can't serve (no daemon, no room, a device map over several devices, other files than
    safetensors), ``on_unavailable="load"`` goes on without it, with one warning;
    ``"fail"`` raises. ``WEIGHTCACHE=off`` and ``WEIGHTCACHE=require`` overrule it.

    ``published``: the name of a finished module. Resident, it is attached as it is: parameters, all
    buffers, tied names; another class, dtype or shape is :class:`Mismatch`. Not resident, or made
    of files that have changed, Transformers loads it from disk, and it is published (with quantized
    weights where the gate allows it) and moves there part by part. It needs a name of its own,
    beside that of the raw checkpoint.

    The model's ``weightcache`` attribute is the :class:`Report`.
    """
    if published is not None and name is not None:
        raise InvalidArgument("name is the raw entry's, published the finished module's: give one")
    if device is not None:
        if keywords.get("device_map") is not None:
            raise InvalidArgument("device and device_map both say where the model goes: give one")
        keywords["device_map"] = device_text(device)
    with enabled(
        name=name,
        on_miss=on_miss,
        on_unavailable=on_unavailable,
        wait=wait,
        progress=progress,
        socket=socket,
    ) as session:
        session.published = published
        made = model_class.from_pretrained(source, *arguments, **keywords)
        model = made[0] if isinstance(made, tuple) else made
        if not isinstance(getattr(model, "weightcache", None), Report):
            reason = Unsupported(f"{type(model).__name__} read its weights in a way of its own")
            settle_unavailable(on_unavailable, reason)
            model.weightcache = Report("disk", reason)
        return made


@contextlib.contextmanager
def enabled(
    *,
    name: str | None = None,
    on_miss: OnMiss = "load",
    on_unavailable: Fallback = "load",
    wait: float | None = None,
    progress: bool | Callable[[Progress], None] = False,
    socket: str | os.PathLike[str] | None = None,
) -> Iterator[_Session]:
    """Inside the block every ``from_pretrained`` of Transformers in this thread is served: those in
    pipelines, PEFT and sentence-transformers too. Arguments as for :func:`from_pretrained`. Other
    threads are left alone. Adapters, and weights that the caller hands over itself, are not
    cached."""
    check_miss(on_miss)
    if on_unavailable not in ("load", "fail"):
        raise InvalidArgument(f'on_unavailable is "{on_unavailable}": "load" and "fail" are known')
    session = _Session(
        on_miss,
        on_unavailable,
        {"name": name, "wait": wait, "progress": progress, "socket": socket},
    )
    with _seam.held():
        token = _active.set(session)
        try:
            yield session
        finally:
            _active.reset(token)


# ---- where Transformers is met -------------------------------------------------------------------


class _Seam:
    """The places where Transformers' functions give way to those below, for as long as anybody is
    inside an ``enabled()``. For everybody else they do what they did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._undo: list[tuple[Any, str, Any]] = []

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._install()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._remove()

    def _install(self) -> None:
        modeling, accelerate = _transformers()
        model_class = modeling.PreTrainedModel
        for owner, attribute, make in (
            (model_class, "_load_pretrained_model", _loading),
            (model_class, "_finalize_model_loading", _finalizing),
            (modeling, "caching_allocator_warmup", _warming_up),
            (accelerate, "is_accelerate_available", _asking_for_accelerate),
        ):
            original = inspect.getattr_static(owner, attribute)
            call = getattr(owner, attribute)
            new = make(call)
            self._undo.append((owner, attribute, original))
            setattr(owner, attribute, staticmethod(new) if owner is model_class else new)

    def _remove(self) -> None:
        while self._undo:
            owner, attribute, original = self._undo.pop()
            setattr(owner, attribute, original)


_seam = _Seam()


def _transformers() -> tuple[Any, Any]:
    try:
        package = importlib.import_module("transformers")
        modeling = importlib.import_module("transformers.modeling_utils")
        accelerate = importlib.import_module("transformers.integrations.accelerate")
    except ImportError as error:
        raise Unsupported(f"transformers can't be imported: {error}") from error
    known = ["model", "state_dict", "checkpoint_files", "load_config"]
    found = getattr(modeling.PreTrainedModel, "_load_pretrained_model", None)
    if found is None or list(inspect.signature(found).parameters)[:4] != known:
        raise Unsupported(
            f"transformers {package.__version__} loads weights in a way that weightcache does not "
            "know: it is tested with 5.17 to 5.25"
        )
    return modeling, accelerate


def _loading(original: Callable[..., Any]) -> Callable[..., Any]:
    def load_pretrained_model(
        model: Any,
        state_dict: Any,
        checkpoint_files: Any,
        load_config: Any,
        *rest: Any,
        **further: Any,
    ) -> Any:
        session = _active.get()
        adapter = bool(rest or further)  # the keys that are expected: those of an adapter
        if session is None or state_dict is not None or adapter:
            return original(model, state_dict, checkpoint_files, load_config, *rest, **further)
        start = time.perf_counter()
        if session.published is not None:
            ready = _attach_module(session, model, checkpoint_files, load_config)
            if ready is not None:
                return ready, None
            report = model.weightcache
            result = original(model, None, checkpoint_files, load_config)
            model.weightcache = replace(report, seconds=time.perf_counter() - start)
            return result
        served = _serve(session, checkpoint_files, load_config)
        if isinstance(served, Report):
            result = original(model, None, checkpoint_files, load_config)
            model.weightcache = replace(served, seconds=time.perf_counter() - start)
            return result
        token = _serving.set(True)
        try:
            result = original(model, served.tensors(), checkpoint_files, load_config)
        finally:
            _serving.reset(token)
        report = served.report(model)
        served.tell_of_copies(model, report, load_config)
        model.weightcache = replace(report, seconds=time.perf_counter() - start)
        return result

    return load_pretrained_model


def _finalizing(original: Callable[..., Any]) -> Callable[..., Any]:
    def finalize_model_loading(model: Any, load_config: Any, loading_info: Any) -> Any:
        session = _active.get()
        if session is not None and session.attached:
            session.attached = False
            return loading_info
        result = original(model, load_config, loading_info)
        if session is not None and session.pending is not None:
            pending, session.pending = session.pending, None
            _publish_module(session, model, pending)
        return result

    return finalize_model_loading


def _warming_up(original: Callable[..., Any]) -> Callable[..., Any]:
    def caching_allocator_warmup(*arguments: Any, **keywords: Any) -> Any:
        return None if _serving.get() else original(*arguments, **keywords)

    return caching_allocator_warmup


def _asking_for_accelerate(original: Callable[..., Any]) -> Callable[..., Any]:
    # Transformers asks for it as soon as there is a device map, and needs it where that has several
    # devices. Those are refused here.
    def is_accelerate_available(*arguments: Any, **keywords: Any) -> Any:
        caller = inspect.currentframe()
        above = caller.f_back if caller is not None else None
        checking = above is not None and above.f_code.co_name == "check_and_set_device_map"
        if checking and above is not None and _active.get() is not None:
            chosen = above.f_locals.get("device_map")
            if isinstance(chosen, Mapping) and len(set(map(str, chosen.values()))) == 1:
                return True
        return original(*arguments, **keywords)

    return is_accelerate_available


# ---- what it is given ----------------------------------------------------------------------------


def _serve(session: _Session, files: Any, load_config: Any) -> _Served | Report:
    """The resident weights, or the report that says why there are none."""
    if switched_off():
        return Report("disk", "WEIGHTCACHE=off")
    try:
        device = _only_device(load_config)
        paths = _safetensors(files)
        attached = [
            _attached(source, device, session.on_miss, session.options)
            for source in _sources(paths)
        ]
    except (*UNAVAILABLE, Unsupported) as error:
        settle_unavailable(session.on_unavailable, error)
        return Report("disk", error.with_traceback(None))
    return _Served(attached)


def _attach_module(session: _Session, model: Any, files: Any, load_config: Any) -> Any:
    """Puts a published module into the one that Transformers has made on the meta device, and gives
    what Transformers wants to know of a load. None: there is none yet; Transformers loads."""
    from weightcache import torch as modules

    if switched_off():
        model.weightcache = Report("disk", "WEIGHTCACHE=off")
        return None
    start = time.perf_counter()
    name = session.published or ""
    config = getattr(load_config.hf_quantizer, "quantization_config", None)
    try:
        device = _only_device(load_config)
        document = _identity(model, _safetensors(files))
        gate.check(None, config, place="attach")
        try:
            with attach(
                name,
                framework="pt",
                device=device,
                expect={"source": document["source"]},
                wait=session.options["wait"] if session.on_miss == "wait" else 0,
                progress=session.options["progress"],
                socket=session.options["socket"],
            ) as found:
                at = f"{found.name}@{found.generation}"
                form = found.entry.form
        except (NotFound, Mismatch):
            if session.on_miss == "fail":
                raise
            session.pending = {**document, "quantization": config, "device": device}
            model.weightcache = Report("loaded", name=name)
            return None
        model.tie_weights()  # as they will be: Transformers ties what it has loaded
        loaded = modules.load_model(
            model,
            at,
            form=form,
            device=device,
            quantization=config,
            socket=session.options["socket"],
        )
    except (*UNAVAILABLE, Unsupported) as error:
        settle_unavailable(session.on_unavailable, error)
        model.weightcache = Report("disk", error.with_traceback(None))
        return None
    session.attached = True
    entry = loaded.entry
    model.weightcache = Report(
        "resident",
        "",
        entry.name,
        entry.generation,
        entry.device,
        loaded.bytes,
        0,
        time.perf_counter() - start,
    )
    report = importlib.import_module("transformers.utils.loading_report").LoadStateDictInfo
    kinds = {"conversion_errors": dict, "error_msgs": list}
    return report(**{part.name: kinds.get(part.name, set)() for part in fields(report)})


def _publish_module(session: _Session, model: Any, pending: dict[str, Any]) -> None:
    from weightcache import torch as modules

    try:
        made = modules.publish(
            model,
            session.published or "",
            source_id=pending["source"]["source_id"],
            form=pending["form"],
            quantization=pending["quantization"],
            replace=True,
            wait=session.options["wait"],
            progress=session.options["progress"],
            socket=session.options["socket"],
        )
    except (*UNAVAILABLE, Unsupported) as error:
        settle_unavailable(session.on_unavailable, error)
        model.weightcache = replace(
            model.weightcache, loaded_from="disk", reason=error.with_traceback(None)
        )
        return
    entry = made.entry
    model.weightcache = replace(
        model.weightcache,
        loaded_from="loaded" if made.outcome == "published" else "waited",
        name=entry.name,
        generation=entry.generation,
        device=entry.device,
        shared_bytes=made.bytes,
    )


def _identity(model: Any, paths: list[str]) -> dict[str, Any]:
    """What a finished module is made of, and by whom: the files, as the file system tells them
    apart, and Transformers' version, the class, the dtype."""
    package = importlib.import_module("transformers")
    digest = hashlib.sha256()
    for path in sorted(paths):
        it = os.stat(path)
        digest.update(f"{path}\0{it.st_size}\0{it.st_mtime_ns}\0{it.st_ino}\0".encode())
    config = model.config.to_json_string(use_diff=False)
    extra = {
        "class": type(model).__qualname__,
        "config": hashlib.sha256(config.encode()).hexdigest(),
    }
    return {
        "source": {"source_id": f"files:{digest.hexdigest()}"},
        "form": {
            "engine": "transformers",
            "engine_version": package.__version__,
            "dtype": str(model.dtype).removeprefix("torch."),
            "extra": extra,
        },
    }


def _only_device(load_config: Any) -> str:
    import torch

    modeling = importlib.import_module("transformers.modeling_utils")
    if load_config.device_mesh is not None:
        raise Unsupported("weights that are split over several GPUs are not served: use "
                          "weightcache.iter_tensors in an engine that does")  # fmt: skip
    for several in ("is_deepspeed_zero3_enabled", "is_fsdp_enabled"):
        if getattr(modeling, several, lambda: False)():
            raise Unsupported("weights that are split over several processes are not served")
    places = {
        str(torch.device("cuda", place) if isinstance(place, int) else place)
        for place in (load_config.device_map or {"": "cpu"}).values()
    }
    if len(places) != 1:
        raise Unsupported(
            f"the device map has {len(places)} devices ({', '.join(sorted(places))}), and resident "
            "weights lie on one: give one device"
        )
    place = places.pop()
    if place == "cuda":
        place = f"cuda:{torch.cuda.current_device()}"
    if place != "cpu" and not place.startswith("cuda:"):
        raise Unsupported(f'the cache has no memory on "{place}": "cpu" and "cuda:N" have')
    return place


def _safetensors(files: Any) -> list[str]:
    paths = [os.path.abspath(file) for file in files or []]
    others = [path for path in paths if not path.endswith(".safetensors")]
    if others or not paths:
        raise Unsupported(f'"{others[0] if others else "nothing"}" is no safetensors file')
    return paths


def _sources(paths: list[str]) -> list[str]:
    """What to load: the directory, where it means these files and no others; else each file."""
    folders = {os.path.dirname(path) for path in paths}
    if len(folders) == 1:
        folder = folders.pop()
        with contextlib.suppress(WeightcacheError):
            _, found = checkpoint_tensors(folder)
            names = {tensor.file for tensor in found}
            if {os.path.join(folder, name) for name in names} == set(paths):
                return [folder]
    return paths


def _attached(source: str, device: str, on_miss: OnMiss, options: dict[str, Any]) -> Attachment:
    def at(name: str | None, **further: Any) -> Attachment:
        keywords = {**options, **further, "name": name}
        made: Attachment = load(source, device=device, framework="pt", on_miss=on_miss, **keywords)
        return made

    if options["name"] is not None:
        return at(options["name"])
    try:
        return at(None)
    except AlreadyExists:
        # Directories of many checkpoints are called alike: the path tells them apart.
        stem = os.path.basename(source).removesuffix(".safetensors")
        return at(f"{stem}-{hashlib.sha256(source.encode()).hexdigest()[:12]}", replace=True)


class _Served:
    def __init__(self, attached: list[Attachment]) -> None:
        self._attached = attached
        self._tensors: dict[str, Any] = {}
        for attachment in attached:
            self._tensors.update(attachment.tensors())
        sizes: Counter[Any] = Counter()
        for tensor in self._tensors.values():
            sizes[tensor.dtype] += tensor.numel() * tensor.element_size()
        self._dtype = sizes.most_common(1)[0][0] if sizes else None

    def tensors(self) -> dict[str, Any]:
        """Once: what Transformers has no use for is given back while it loads."""
        tensors, self._tensors = self._tensors, {}
        return tensors

    def report(self, model: Any) -> Report:
        ranges = [_range for attachment in self._attached for _range in _ranges(attachment)]
        shared = copied = 0
        seen = set()
        for tensor in model.state_dict(keep_vars=True).values():
            if not hasattr(tensor, "data_ptr") or tensor.is_meta:
                continue
            at, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
            if size == 0 or at in seen:
                continue
            seen.add(at)
            if any(first <= at < end for first, end in ranges):
                shared += size
            else:
                copied += size
        origins = {attachment.loaded_from for attachment in self._attached}
        return Report(
            next(origin for origin in ("loaded", "waited", "resident") if origin in origins),
            name=", ".join(attachment.name for attachment in self._attached),
            generation=self._attached[0].generation,
            device=self._attached[0].device,
            shared_bytes=shared,
            copied_bytes=copied,
        )

    def tell_of_copies(self, model: Any, report: Report, load_config: Any) -> None:
        asked = load_config.dtype
        if load_config.hf_quantizer is not None or asked == self._dtype:
            return
        if report.copied_bytes > report.shared_bytes:
            warnings.warn(
                f'"{report.name}" is resident as {self._dtype}, and {type(model).__name__} was '
                f"asked for as {asked}: {report.copied_bytes / 2**30:.1f} GiB of it are converted "
                "copies of this process's own, and not shared",
                RuntimeWarning,
                stacklevel=6,
            )


def _ranges(attachment: Attachment) -> list[tuple[int, int]]:
    """Where an attachment's segments lie in this process."""
    found = []
    for index in range(lib.wc_attachment_segment_count(attachment.handle)):
        it = read(lib.wc_attachment_segment_at, structs.Segment, attachment.handle, index)
        if it.data:
            found.append((it.data, it.data + it.bytes))
    return found
