"""Draws profiles of clusters that nobody knows: an adapter's family, link and slot from a known profile, other values for
what `verbscope learn` may find."""

import json
import math
import random

# Times are drawn within this factor of the known profile's, sizes of caches within the next.
TIME_FACTOR, SIZE_FACTOR = 1.6, 2.0
# No measurement of verbs sees these, or a host states them.
KNOWN = {"event_wakeup_ns", "register_call_ns", "register_page_ns", "dram_ns", "slow_read_extra_ns", "memory_read_jitter_ns",
         "poll_memory_ns", "atomic_add_ns", "cable_ns"}
SIZES = {"wqe_cache_bytes", "sent_wqe_cache_bytes", "qp_context_cache_bytes", "qp_responder_context_cache_bytes"}
GENERATIONS = {2: (500, 24, 20), 3: (984.6, 26, 22), 4: (1969.2, 24, 20)}


def drawn_factor(dice, largest):
    return math.exp(dice.uniform(-math.log(largest), math.log(largest)))


def draw_slot(dice, wire):
    """Another PCIe generation, width, and port rate: all are facts that a host states."""
    generation = dice.choice([3, 3, 4])
    rate, request, completion = GENERATIONS[generation]
    wire["pcie_generation"]["value"], wire["pcie_lane_mb_per_s"]["value"] = generation, rate
    wire["pcie_request_header_bytes"]["value"], wire["pcie_completion_header_bytes"]["value"] = request, completion
    wire["pcie_lanes"]["value"] = dice.choice([8, 16])
    wire["port_gbit_per_s"]["value"] = dice.choice([54.54, 100, 200] if wire.get("link_type") is None else [25, 40, 100])


def draw_profile(root, seed):
    """(the profile, the name of the known one that it was drawn from)"""
    dice = random.Random(seed)
    base = dice.choice(["cib", "cx3", "cx4", "cx5", "cx5-100g", "cx5ib", "cx6"])
    profile = json.loads((root / f"configs/clusters/{base}.json").read_text())
    profile["name"] = f"hidden{seed}"
    profile["description"] = f"drawn from {base} with seed {seed}"
    draw_slot(dice, profile["wire"])
    profile["host"]["cores"]["value"] = dice.choice([8, 12, 16, 24])
    for section in ("host", "link", "nic", "fabric"):
        for key, parameter in profile[section].items():
            value = parameter["value"]
            if key.endswith("_ns") and key not in KNOWN and value:
                parameter["value"] = round(value * drawn_factor(dice, TIME_FACTOR), 3)
            elif key in SIZES and value:
                parameter["value"] = int(value * drawn_factor(dice, SIZE_FACTOR))
    for key in ("requester_units", "responder_units"):
        value = profile["nic"][key]["value"]
        profile["nic"][key]["value"] = max(1, round(value * dice.choice([0.5, 0.75, 1, 1.5])))
    for key in ("tlp_share", "host_share"):
        profile["link"][key]["value"] = round(dice.uniform(0.8, 0.99), 4)
    profile["fabric"]["port_share"]["value"] = round(dice.uniform(0.92, 1), 4)
    return profile, base
