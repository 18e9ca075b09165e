"""What smoothing gains: a small run of the experiment over made-up and smooth histograms."""

import numpy as np
from experiments.dawa_smooth import run


def test_smoothing_gains_on_most_histograms(tmp_path):
    """One release each, of which a single ratio varies by much; where nothing is to be gained all stays, and the mean gains clearly."""
    (tmp_path / "hist1d").mkdir()
    np.save(tmp_path / "hist1d" / "rough.n4096.npy", np.arange(4096) * 7919 % 5000)
    found = run(tmp_path, tmp_path / "out", cells=(64,), asked=("prefix",), epsilons=("0.1",), trials=1)
    gains = [row["over least squares"] for row in found]
    assert len(found) == 1 + 2 * 6 + 2 * 14
    assert np.median(gains) <= 1
    assert max(gains) < 1.05
    assert np.exp(np.mean(np.log(np.maximum(gains, 0.01)))) < 0.95
    assert (tmp_path / "out" / "smoothed.csv").read_text().count("\n") == len(found) + 1
