"""What smoothing gains: a small run of the experiment over made-up and smooth histograms."""

import numpy as np
from experiments.dawa_smooth import run


def test_smoothing_never_costs_much(tmp_path):
    """One release each: 0.99 to 1.04 of least squares on the worst histogram of a group, less on the others."""
    (tmp_path / "hist1d").mkdir()
    np.save(tmp_path / "hist1d" / "rough.n4096.npy", np.arange(4096) * 7919 % 5000)
    found = run(tmp_path, tmp_path / "out", quick=True)
    gains = [row["over least squares"] for row in found]
    assert len(found) == 1 + 2 * 6 + 2 * 14
    assert max(gains) < 1.1
    assert np.exp(np.mean(np.log(gains))) < 0.9
    assert (tmp_path / "out" / "smoothed.csv").read_text().count("\n") == len(found) + 1
