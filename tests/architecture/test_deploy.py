"""What is in `deploy/` names commands, settings, variables and metrics that there are."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from filepact.config.settings import parse_settings
from filepact_cli.main import parse
from filepact_gateway import metrics
from tests.architecture.project import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEPLOY = ROOT / "deploy"
FOREIGN = {"PGPASSWORD", "HOME", "WORKSPACE"}
FILES = sorted(path for path in DEPLOY.rglob("*") if path.suffix in (".yaml", ".yml"))


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def compose() -> Any:
    (found,) = documents(DEPLOY / "compose.yaml")
    return found


def objects() -> list[Any]:
    folder = DEPLOY / "kubernetes"
    return [one for path in sorted(folder.glob("*.yaml")) for one in documents(path)]


def pods() -> Iterator[Any]:
    for one in objects():
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield spec["template"]["spec"]


def containers() -> Iterator[Any]:
    for pod in pods():
        yield from (*pod.get("initContainers", ()), *pod["containers"])


def ours() -> Iterator[list[str]]:
    """The words of every command of ours, also of those in shell scripts."""
    texts = [path.read_text(encoding="utf-8") for path in (*FILES, DEPLOY / "README.md")]
    for found in re.findall(
        r"(?<![\w/`-])filepact ((?:--root|workspace|serve)[^|#\n`]*)", "\n".join(texts)
    ):
        yield [word.strip('"').replace("$WORKSPACE", "s3://b/p") for word in found.split()]
    for service in compose()["services"].values():
        if "build" in service and "entrypoint" not in service:
            yield service["command"]
    for one in containers():
        if "command" not in one:
            yield [word.replace("$(WORKSPACE)", "s3://b/p") for word in one["args"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_can_be_read(path: Path) -> None:
    assert all(isinstance(one, dict) for one in documents(path))


def test_every_command_is_one_of_ours() -> None:
    found = list(ours())
    assert len(found) >= 7
    for words in found:
        assert parse(words).does, words


def test_every_setting_is_one_of_ours() -> None:
    texts = [(DEPLOY / "filepact.toml").read_text(encoding="utf-8")]
    texts += [one["data"]["filepact.toml"] for one in objects() if one["kind"] == "ConfigMap"]
    assert len(texts) == 2
    for text in texts:
        gateway = parse_settings(text, name="deploy").extensions["gateway"]
        assert gateway.knows_users  # an address that others can reach


def test_every_variable_is_documented() -> None:
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    how_to = (ROOT / "docs" / "how-to" / "object-storage.md").read_text(encoding="utf-8")
    names = set(compose()["x-filepact"]["environment"])
    names |= {one["name"] for container in containers() for one in container["env"]}
    assert {"FILEPACT_STATE_DIR", "AWS_ENDPOINT_URL"} <= names
    for name in names - FOREIGN:
        assert f"`{name}`" in settings or name in how_to, name
    example = (DEPLOY / "env.example").read_text(encoding="utf-8")
    asked = re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert set(asked) == {line.partition("=")[0] for line in example.splitlines()}


def test_every_metric_of_the_dashboard_is_one_of_the_gateway() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for query in queries for name in re.findall(r"filepact_\w+", query)}
    there = {*metrics._COUNTERS, *metrics._GAUGES, f"{metrics._SECONDS}_bucket"}
    assert named == there  # and all of them are shown
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    for query in queries:
        assert query.count("(") == query.count(")")
    labels = {label.partition("=")[0] for _, every in metrics._COUNTERS.values() for label in every}
    asked = {word for query in queries for word in re.findall(r"sum by \((\w+)\)", query)}
    assert asked <= labels | {"le", "instance"}


def test_what_is_scraped_is_what_is_served() -> None:
    (scraped,) = documents(DEPLOY / "prometheus.yml")
    (job,) = scraped["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    service, _, port = target.partition(":")
    words = compose()["services"][service]["command"]
    assert parse(words).health.endswith(f":{port}")
    assert job["metrics_path"] == "/metrics"


def test_compose_names_only_what_it_has() -> None:
    found = compose()
    for service in found["services"].values():
        for name in service.get("depends_on", {}):
            assert name in found["services"]
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./"):
                assert (DEPLOY / source).exists() or source == "./tokens", source
            else:
                assert source in found["volumes"]
        for config in service.get("configs", ()):
            assert config["source"] in found["configs"]
        image = service.get("image", "x:1")
        assert image.rpartition(":")[2] not in ("", "latest", image), image
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), port
    build = found["x-filepact"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    assert f"ARG {next(iter(build['args']))}" in (ROOT / build["dockerfile"]).read_text("utf-8")
    extras = set(build["args"]["EXTRAS"].strip("[]").split(","))
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f"\n{extra} = [" in declared for extra in extras)


def test_the_manifests_fit_together() -> None:
    names = {(one["kind"], one["metadata"]["name"]) for one in objects()}
    assert len(names) == len(objects())
    keys = {
        one["metadata"]["name"]: one.get("data", {})
        for one in objects()
        if one["kind"] == "ConfigMap"
    }
    secret = {
        one["metadata"]["name"]: one["stringData"] for one in objects() if one["kind"] == "Secret"
    }
    for pod in pods():
        volumes = {one["name"] for one in pod["volumes"]} | {"data"}
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert {one["name"] for one in container["volumeMounts"]} <= volumes
            for variable in container["env"]:
                source = variable.get("valueFrom", {})
                for kind, known in (("configMapKeyRef", keys), ("secretKeyRef", secret)):
                    if kind in source:
                        assert source[kind]["key"] in known[source[kind]["name"]]
    (stateful,) = [one for one in objects() if one["kind"] == "StatefulSet"]
    labels = stateful["spec"]["template"]["metadata"]["labels"]
    for one in objects():
        if one["kind"] in ("Service", "PodDisruptionBudget", "StatefulSet"):
            selector = one["spec"]["selector"]
            assert (selector.get("matchLabels") or selector).items() <= labels.items()
    (gateway,) = stateful["spec"]["template"]["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in gateway["ports"]}
    asked = parse(gateway["args"])
    assert asked.listen.endswith(f":{ports['mcp']}")
    assert asked.health.endswith(f":{ports['health']}")
    assert gateway["readinessProbe"]["httpGet"]["path"] == "/readyz"
