"""Dask clusters whose workers are jobs of a batch system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError, missing_extra

BATCH_SYSTEMS = {"slurm": "SLURMCluster", "oar": "OARCluster", "pbs": "PBSCluster"}
LARGEST_CONFIG, DEEPEST_CONFIG = 100_000, 20


def batch_cluster(kind: str, config: str | None, workers: int | None) -> Any:
    """A Dask cluster whose workers are jobs of a batch system, as the user's configuration describes them."""
    try:
        import dask
        import dask_jobqueue
    except ImportError:
        raise missing_extra("dask-jobqueue", "cluster") from None
    if config is not None:
        dask.config.update(dask.config.config, read_config(Path(config)))
    if not dask.config.get(f"jobqueue.{kind}.cores", None):
        raise InputError(
            f"dask-jobqueue has no configuration for {kind}",
            fix=f"name it as --cluster {kind}:FILE.yaml (jobqueue: {{{kind}: {{cores: .., memory: ..}}}})",
        )
    cluster = getattr(dask_jobqueue, BATCH_SYSTEMS[kind])()
    cluster.scale(jobs=workers or 1)
    return cluster


def read_config(path: Path) -> dict[str, Any]:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the configuration can't be read: {error}", path=path) from None
    try:
        # Aliases let a few lines grow to gigabytes, and deep nesting takes minutes; a configuration needs neither.
        if len(text) > LARGEST_CONFIG or not _is_flat(text):
            raise InputError(
                "this is no plain configuration file", path=path, fix="write it without YAML aliases or deep nesting"
            )
        config = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"this is not YAML: {error}", path=path) from None
    if not isinstance(config, dict) or "jobqueue" not in config:
        raise InputError("there is no `jobqueue` section in it", path=path)
    return config


def _is_flat(text: str) -> bool:
    """No aliases, and nothing deeper than a few levels; stops reading where that is clear."""
    import yaml

    depth = 0
    for event in yaml.parse(text):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST_CONFIG or isinstance(event, yaml.AliasEvent):
            return False
    return True
