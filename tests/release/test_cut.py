"""Of which rows answers are: the share that a limit on the rows of a unit cut, by noisy counts, and how often its interval is right."""

from dataclasses import replace

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, Noise, Privacy
from leastnoise._release import texts
from leastnoise._release._texts import cut_share
from leastnoise._release._words import cut_words, of_words
from release.conftest import example_plan, made


@pytest.fixture(scope="module")
def limited():
    return made(example_plan(privacy=Privacy(ZCDP("1/2"), unit_column="customer", max_rows=20), noise=Noise.DISCRETE_GAUSSIAN))


def guarded(release, cut, kept, cut_std, std):
    return replace(
        release, receipt={"guard_cut": cut, "guard_kept": kept, "guard_used": kept, "guard_cut_std": cut_std, "guard_noise_std": std}
    )


def share_of(release, *counts):
    return cut_share(guarded(release, *counts).receipt, release.level)


@pytest.mark.parametrize(
    ("cut", "uncounted", "kept", "std"),
    [(86_667, 0, 133_333, 1500), (0, 0, 3000, 60), (900, 0, 2100, 80), (5000, 0, 2000, 40), (150, 9_800, 5050, 60), (150, 40, 5050, 60)],
)
def test_the_interval_of_the_share_holds_the_true_one_as_often_as_the_level_says(limited, cut, uncounted, kept, std):
    """Of units that had over three rows cut for each that counts, three are counted: then the lower end holds, as the sentences say."""
    rng, right, trials = np.random.default_rng(3), 0, 1500
    true = (cut + uncounted) / (cut + uncounted + kept)
    for _ in range(trials):
        used, unused, beyond = rng.normal(scale=[std, std, 3 * std]).round()
        found = share_of(limited, cut + int(beyond), kept + int(used + unused), 3 * std, std)
        assert 0 <= found.low <= found.share <= found.high <= 1
        right += found.low <= true <= (1 if uncounted else found.high)
    # the multiplier is the larger of those of normal and Laplace noise
    assert right / trials > 0.95 - 4 * (0.05 * 0.95 / trials) ** 0.5


def test_a_number_below_nothing_does_not_say_that_nothing_was_cut(limited):
    found = share_of(limited, -15_243, 67_337, 3000, 1000)
    assert (found.share, found.low) == (0, 0)
    assert found.high == share_of(limited, 0, 67_337, 3000, 1000).high > 0.05


def test_nothing_is_said_that_the_noise_hides(limited):
    for counts in [(400, 500, 900, 300), (0, -20, 30, 10), (10, 0, 30, 10)]:
        assert share_of(limited, *counts) is None
        assert "cannot be told from the noise" in cut_words(guarded(limited, *counts), texts("en"))
        assert of_words(guarded(limited, *counts), texts("en")) == "of at most 20 rows of every value of 'customer'"
    assert cut_share(limited.receipt, limited.level) is None
    assert "How many rows were cut is not published." in cut_words(limited, texts("en"))


def test_the_share_is_said_in_both_languages(limited):
    found = guarded(limited, 86_667, 133_333, 1500, 500)
    english, german = (of_words(found, texts(language)) for language in ("en", "de"))
    assert english == "of at most 20 rows of every value of 'customer'; at least about 39% of the rows were cut"
    assert german == "höchstens 20 Zeilen je Wert von 'customer'; mindestens etwa 39\u00a0% der Zeilen sind abgeschnitten"
    assert "At least about 39% of the rows were cut (38% to 40%; for each" in cut_words(found, texts("en"))


def test_where_each_row_is_a_unit_nothing_is_cut(release):
    assert (of_words(release, texts("en")), cut_words(release, texts("en"))) == ("", None)
