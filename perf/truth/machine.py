"""The machine and the versions that figures belong to. Standard library only; unknown is null."""

import json
import os
import platform
import subprocess
import time


def text(path):
    """A small file, or none."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def of(root, binary):
    """Facts of the machine and of the program, before anything is measured."""
    cpu = {}
    for line in (text("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        cpu.setdefault(name.strip(), value.strip())
    flags = cpu.get("flags", "").split()
    memory = (text("/proc/meminfo") or "").split()
    return {
        "cpu": cpu.get("model name") or platform.processor() or None,
        "family_model_stepping": [cpu.get(n) for n in ("cpu family", "model", "stepping")],
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "nominal_mhz": float(cpu["cpu MHz"]) if "cpu MHz" in cpu else None,
        "instructions": [f for f in flags if f.startswith(("avx", "amx", "fma"))],
        "governor": text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_kib": int(memory[1]) if len(memory) > 1 else None,
        "system": f"{platform.system()} {platform.release()}",
        "load_average_before": list(os.getloadavg()),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": git(root, "rev-parse", "--short=12", "HEAD"),
        "uncommitted": bool(git(root, "status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock")),
        "annvil": output([binary, "--version"]),
        "kernel_levels": levels(binary),
        "python": platform.python_version(),
    }


def git(root, *arguments):
    """What git says, or none."""
    return output(["git", "-C", root, *arguments])


def output(command):
    """What a command prints, or none where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def levels(binary):
    """The instruction sets that Annvil's kernels can use here, where `annvil doctor` says so."""
    try:
        said = json.loads(output([binary, "doctor", "--json"]) or "{}")
    except json.JSONDecodeError:
        return None
    return said.get("kernels") or said.get("machine", {}).get("kernels")


def theoretical_gflops(facts):
    """f32 peak of two AVX-512 FMA units at the nominal clock, where that can be said; else none.

    The clock under load is usually higher (turbo) and cannot be read inside a virtual machine.
    """
    if facts["nominal_mhz"] is None or "avx512f" not in facts["instructions"]:
        return None
    return facts["cpus"] * 2 * 16 * 2 * facts["nominal_mhz"] / 1e3
