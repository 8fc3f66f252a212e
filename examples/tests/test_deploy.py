"""The files in deploy/: what systemd, Kubernetes and a careful reader say of them.

The service's own parsers read them in Go tests.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

EXAMPLES = Path(__file__).resolve().parents[1]
DEPLOY = EXAMPLES / "deploy"
UNIT = DEPLOY / "systemd" / "cipherlane-keyservice.service"
MANIFESTS = DEPLOY / "kubernetes" / "keyservice.yaml"
DOCKERFILE = EXAMPLES.parent / "keyservice" / "Dockerfile"
KUBERNETES = "1.29"  # what is old enough to be met, and new enough to be supported somewhere
EXPOSURE = 20  # of 100: "OK" in systemd's words; a unit without hardening has 96


def manifests() -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(MANIFESTS.read_text()) if document]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [document for document in manifests() if document["kind"] == kind]
    return found


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("NO SYSTEMD: the unit was not looked at by systemd-analyze")
    return subprocess.run(["systemd-analyze", *arguments], check=False, capture_output=True, text=True, timeout=60)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/bin/cipherlane-keyservice", "/bin/true"))
    outcome = analyze("verify", str(unit))
    assert outcome.returncode == 0, outcome.stderr
    assert unit.name not in outcome.stderr, outcome.stderr


def test_a_mistake_in_the_unit_is_noticed(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("ProtectSystem=strict", "ProtectSystem=stritc"))
    assert "Failed to parse" in analyze("verify", str(unit)).stderr


def test_the_unit_is_hardened() -> None:
    outcome = analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", str(UNIT))
    assert outcome.returncode == 0, outcome.stdout[-500:] + outcome.stderr


@pytest.mark.parametrize("index", range(len(manifests())))
def test_kubernetes_understands_the_manifest(index: int) -> None:
    kubernetes_validate.validate(manifests()[index], KUBERNETES, strict=True)


def test_a_mistake_in_a_manifest_is_noticed() -> None:
    wrong = of_kind("StatefulSet")
    wrong["spec"]["replica"] = wrong["spec"].pop("replicas")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_pod_has_no_more_rights_than_it_needs() -> None:
    pod = of_kind("StatefulSet")["spec"]["template"]["spec"]
    outer = pod["securityContext"]
    assert outer["runAsNonRoot"] is True
    assert outer["runAsUser"] == outer["runAsGroup"] == outer["fsGroup"] != 0
    assert outer["fsGroupChangePolicy"] == "OnRootMismatch"
    assert outer["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        inner = container["securityContext"]
        assert inner["allowPrivilegeEscalation"] is False
        assert inner["readOnlyRootFilesystem"] is True
        assert inner["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        claimed = {claim["metadata"]["name"] for claim in of_kind("StatefulSet")["spec"]["volumeClaimTemplates"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]} | claimed


def test_the_parts_fit_together() -> None:
    spec = of_kind("StatefulSet")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == of_kind("Service")["spec"]["selector"]
    assert of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    ports = {port["name"]: port["containerPort"] for port in spec["template"]["spec"]["containers"][0]["ports"]}
    settings = yaml.safe_load(of_kind("ConfigMap")["data"]["keyservice.yaml"])
    assert settings["listen"].endswith(f":{ports['api']}")
    assert settings["admin_listen"].endswith(f":{ports['admin']}")
    grace = int(settings["grace_period"].removesuffix("s"))
    assert grace < spec["template"]["spec"]["terminationGracePeriodSeconds"]
    mounts = [mount["mountPath"] for mount in spec["template"]["spec"]["containers"][0]["volumeMounts"]]
    for path in [
        settings["policy"],
        settings["audit"]["file"],
        settings["store"]["vault"]["ca"],
        *settings["tls"].values(),
    ]:
        assert any(path.startswith(mount + "/") for mount in mounts), path


def test_the_image_holds_two_programs_and_no_root() -> None:
    stage = DOCKERFILE.read_text().split("FROM scratch")[1]
    (user,) = re.findall(r"^USER (\d+):(\d+)$", stage, re.MULTILINE)
    pod = of_kind("StatefulSet")["spec"]["template"]["spec"]["securityContext"]
    assert user == (str(pod["runAsUser"]), str(pod["runAsGroup"]))
    assert re.findall(r"^(RUN|ADD)", stage, re.MULTILINE) == []
    version = re.search(r"^go (\d+\.\d+)", (DOCKERFILE.parent / "go.mod").read_text(), re.MULTILINE)
    assert version is not None
    assert f"FROM golang:{version[1]} AS build" in DOCKERFILE.read_text()
