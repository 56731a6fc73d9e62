"""True errors against closed forms and other rules of integration; samples against their recipe."""

import copy
import dataclasses
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import beta as beta_function
from scipy.special import betainc, betaln, roots_jacobi

import truecal
from truecal.simulation import (
    AtomScores,
    BetaScores,
    EmpiricalScores,
    FunctionCurve,
    GLMCurve,
    IdentityCurve,
    LogisticCurve,
    MixtureScores,
    Population,
    PowerCurve,
    RoundedScores,
    StepCurve,
    UniformScores,
    population_with_error,
    with_atoms,
)
from truecal.simulation._population import ALTERNATIVES, largest_error

SKEWED = BetaScores(2.7752, 0.0478)


class TestTrueError:
    @pytest.mark.parametrize("d", [0.25, 1.5, 2.0, 7.0])
    @pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.1, 0.1), (2.8, 0.05), (0.3, 0.2), (30.0, 10.0)])
    def test_power_curve_equals_its_closed_form(self, a, b, d):
        moments = [beta_function(a + power, b) / beta_function(a, b) for power in (1, d, 2, d + 1, 2 * d)]
        population = Population(BetaScores(a, b), PowerCurve(d))
        for norm, exact in [
            (1, abs(moments[0] - moments[1])),
            (2, np.sqrt(moments[2] - 2 * moments[3] + moments[4])),
        ]:
            assert population.true_error(norm) == pytest.approx(exact, abs=1e-10)

    @pytest.mark.parametrize("d", [1 + 1e-3, 1 + 1e-6, 1 + 1e-12, 1 - 1e-9])
    def test_power_curve_near_the_identity_does_not_cancel(self, d):
        """For small d - 1 the gap is (d - 1) c log c, whose square has mean 2/27 under the uniform."""
        error = Population(UniformScores(), PowerCurve(d)).true_error()
        assert error == pytest.approx(abs(d - 1) * np.sqrt(2 / 27), rel=2 * abs(d - 1) + 1e-10)

    @pytest.mark.parametrize("norm", [1, 2, 3.7, 40, 2000])
    def test_any_norm(self, norm):
        """|c - c^2|^p under the uniform integrates to B(p + 1, p + 1)."""
        exact = np.exp(betaln(norm + 1, norm + 1) / norm)
        assert Population(UniformScores(), PowerCurve(2)).true_error(norm) == pytest.approx(exact, abs=1e-10)

    def test_scaled_power_equals_its_closed_form(self):
        a, b, k, d = 1.1928, 0.2206, np.exp(-0.03), 1.27
        curve = GLMCurve("log", "log", -0.03, 1.27)
        moments = [beta_function(a + power, b) / beta_function(a, b) for power in (2, d + 1, 2 * d)]
        exact = np.sqrt(moments[0] - 2 * k * moments[1] + k**2 * moments[2])
        assert Population(BetaScores(a, b), curve).true_error() == pytest.approx(exact, abs=1e-12)

    def test_smooth_curve_by_gauss_jacobi(self):
        node, weight = roots_jacobi(80, SKEWED.b - 1, SKEWED.a - 1)
        c = (node + 1) / 2
        exact = np.sqrt(np.sum(weight * (1 / (1 + np.exp(5 - 10 * c)) - c) ** 2) / weight.sum())
        assert Population(SKEWED, LogisticCurve(10, -5)).true_error() == pytest.approx(exact, abs=1e-11)

    @pytest.mark.parametrize("norm", [1, 1.5, 2, 3])
    def test_crossing_curve_by_quadpack(self, norm):
        """logistic(10 c - 5) crosses the identity at 0.5 and next to both ends."""
        curve = LogisticCurve(10, -5)

        def gap(c):
            return abs(1 / (1 + np.exp(5 - 10 * c)) - c) ** norm

        roots = [0.00719, 0.5, 1 - 0.00719]
        exact = quad(gap, 0, 1, points=roots, epsabs=1e-13, epsrel=1e-12, limit=500)[0] ** (1 / norm)
        assert Population(UniformScores(), curve).true_error(norm) == pytest.approx(exact, abs=1e-9)

    def test_kinks_that_only_the_complement_can_see(self):
        """1 - k t^(1/2) crosses 1 - t at t = k^2 = 1e-22. Both integrals are powers of t."""
        a, b, k = 1.0, 0.05, 1e-11
        curve = GLMCurve("logflip", "logflip", np.log(k), 0.5)
        root = k**2

        def below(power, x):  # E[t^power; t < x] when a = 1: b t^(b-1)
            return b * x ** (b + power) / (b + power)

        exact = k * (2 * below(0.5, root) - below(0.5, 1)) - (2 * below(1, root) - below(1, 1))
        assert Population(BetaScores(a, b), curve).true_error(1) == pytest.approx(exact, abs=1e-14)

    @pytest.mark.parametrize("norm", [1, 2])
    def test_steps_by_the_pieces(self, norm):
        edges, values = [0.3, 0.9], [0.2, 0.5, 0.99]
        total, mass = 0.0, betainc(SKEWED.a, SKEWED.b, [0, 0.3, 0.9, 1])
        first = SKEWED.mean * betainc(SKEWED.a + 1, SKEWED.b, [0, 0.2, 0.3, 0.5, 0.9, 0.99, 1])
        zeroth = betainc(SKEWED.a, SKEWED.b, [0, 0.2, 0.3, 0.5, 0.9, 0.99, 1])
        second = SKEWED.moment(2) * betainc(SKEWED.a + 2, SKEWED.b, [0, 0.3, 0.9, 1])
        if norm == 1:  # the sign changes at each value
            for k, level in enumerate(values):
                for j, sign in [(2 * k, 1), (2 * k + 1, -1)]:
                    total += sign * (level * (zeroth[j + 1] - zeroth[j]) - (first[j + 1] - first[j]))
        else:
            for k, level in enumerate(values):
                part = np.diff(mass)[k] * level**2 - 2 * level * (first[2 * k + 2] - first[2 * k])
                total += part + np.diff(second)[k]
        error = Population(SKEWED, StepCurve(edges, values)).true_error(norm)
        assert error == pytest.approx(total ** (1 / norm), abs=1e-11)

    def test_atoms_are_counted(self):
        base, curve = UniformScores(), FunctionCurve(lambda c: 0.8 * c + 0.05)
        alone = Population(base, curve).true_error() ** 2
        both = Population(with_atoms(base, at_zero=0.1, at_one=0.3), curve).true_error() ** 2
        assert both == pytest.approx(0.1 * 0.05**2 + 0.3 * 0.15**2 + 0.6 * alone, abs=1e-13)

    def test_real_scores(self):
        values = np.random.default_rng(0).random(500) ** 0.1
        for norm in (1, 2, 5):
            exact = np.mean((values - values**3) ** norm) ** (1 / norm)
            assert Population(EmpiricalScores(values), PowerCurve(3)).true_error(norm) == pytest.approx(exact)

    def test_rounding_moves_the_curve_with_the_score(self):
        """To one decimal: E[Y | r] = r^2, not the mean of c^2 over the cell of r."""
        r = np.arange(11) / 10
        mass = np.array([0.05] + [0.1] * 9 + [0.05])
        exact = np.sqrt(np.sum(mass * (r - r**2) ** 2))
        rounded = RoundedScores(UniformScores(), decimals=1)
        assert Population(rounded, PowerCurve(2)).true_error() == pytest.approx(exact, abs=1e-14)

    def test_float32_matters_for_a_steep_curve(self):
        """Half of the scores become 1, where the curve is right; the mean gap falls by 0.00027."""
        curve = GLMCurve("logflip", "logflip", -0.24, 0.3)
        steps = np.arange(2**16)
        mass = np.diff(betainc(SKEWED.b, SKEWED.a, np.concatenate([[0.0], (steps + 0.5) * 2.0**-24])))
        t = steps * 2.0**-24
        cut = (steps[-1] + 0.5) * 2.0**-24
        near = np.sum(mass * np.abs(t - np.exp(-0.24) * t**0.3))
        rest = SKEWED.expect(
            lambda c, t: np.where(t > cut, np.abs(curve.gap(c, t)), 0),
            points=[1 - cut],
        )
        got = Population(RoundedScores(SKEWED, dtype="float32"), curve).true_error(1)
        assert got == pytest.approx(near + rest, abs=1e-10)
        assert Population(SKEWED, curve).true_error(1) - got == pytest.approx(0.000272527, abs=1e-9)

    def test_identity_is_exactly_zero(self):
        for scores in (SKEWED, RoundedScores(SKEWED, dtype="float32"), AtomScores([0.3])):
            assert Population(scores, IdentityCurve()).true_error(norm=1.7) == 0
        almost = Population(SKEWED, GLMCurve("logflip", "logflip", b1=1.0))
        assert almost.true_error() == pytest.approx(0, abs=1e-15)

    def test_clipped_curve(self):
        with pytest.warns(UserWarning, match="leaves"):
            population = Population(UniformScores(), FunctionCurve(lambda c: 1.25 * c))
        assert population.true_error(1) == pytest.approx(0.25 * 0.8**2 / 2 + 0.2**2 / 2, abs=1e-12)
        assert population.mean_label == pytest.approx(0.4 + 0.2, abs=1e-12)

    def test_complaints(self):
        population = Population(UniformScores(), PowerCurve(2))
        for norm in (0.5, np.inf, "2", True):
            with pytest.raises(ValueError, match="norm must be a finite number >= 1"):
                population.true_error(norm)


class TestConstruction:
    def test_says_how_far_and_where_the_curve_leaves(self):
        with pytest.warns(
            UserWarning, match=r"reaches 1.2214 at score 1. .* 96.2% of the scores, in about \[0.86, 1\]"
        ) as caught:
            Population(BetaScores(2.8, 0.05), GLMCurve("log", "log", 0.2, 1.27))
        assert caught[0].filename == __file__

    def test_sees_what_happens_next_to_one(self):
        """This curve exceeds 1 only for scores that round to 1."""
        with pytest.warns(UserWarning, match=r"reaches inf at score 1\. .* 17.8% of the scores"):
            Population(SKEWED, GLMCurve("log", "logit", -37.43, 1.0))

    def test_is_quiet_where_no_scores_are(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Population(UniformScores(0, 0.8), FunctionCurve(lambda c: 1.2 * c))
            Population(AtomScores([0.5]), FunctionCurve(lambda c: 3 * c - 1))
            Population(BetaScores(900, 300), FunctionCurve(lambda c: c - 0.01))

    def test_complaints(self):
        with pytest.raises(ValueError, match=r"Wrap a function in truecal.simulation.FunctionCurve"):
            Population(UniformScores(), lambda c: c)
        with pytest.raises(ValueError, match=r"curve must be a calibration curve. Got 3"):
            Population(UniformScores(), 3)
        with pytest.raises(ValueError, match="scores must be a score distribution"):
            Population("beta", IdentityCurve())
        with pytest.raises(ValueError, match="Got NaN at score 0"):
            Population(UniformScores(), FunctionCurve(lambda c: np.where(c > 0, c, np.nan)))

    def test_is_a_value(self):
        population = Population(SKEWED, PowerCurve(2))
        assert population == Population(BetaScores(2.7752, 0.0478), PowerCurve(2.0))
        population.true_error()
        assert pickle.loads(pickle.dumps(population)) == population
        assert copy.deepcopy(population) == population
        assert len({population, population.calibrated()}) == 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            population.curve = IdentityCurve()


class TestSampling:
    POPULATIONS = (
        Population(SKEWED, GLMCurve("logflip", "logflip", -0.24, 0.3)),
        Population(BetaScores(0.2, 0.3), GLMCurve("logit", "logit", -0.88, 0.49)),
        Population(with_atoms(UniformScores(), at_one=0.3), PowerCurve(1.27)),
        Population(RoundedScores(SKEWED, dtype="float32"), LogisticCurve(10, -5)),
        Population(EmpiricalScores(np.linspace(0, 1, 30)), StepCurve([0.5], [0.2, 0.7])),
        Population(MixtureScores([SKEWED, UniformScores(0, 0.5)], [0.4, 0.6]), IdentityCurve()),
    )

    @pytest.mark.parametrize("population", POPULATIONS, ids=lambda p: type(p.scores).__name__)
    def test_scores_come_first_then_uniforms(self, population):
        y_true, y_proba = population.sample(777, rng=3)
        rng = np.random.default_rng(3)
        score, complement = population.draw(777, rng)
        label = rng.random(777) < population.curve(score, complement)
        assert y_true.dtype == np.int64
        assert (y_true == label).all()
        assert (y_proba == score).all()

    @pytest.mark.parametrize("n", [1, 7, 200, 6001])
    @pytest.mark.parametrize("population", POPULATIONS, ids=lambda p: type(p.scores).__name__)
    def test_a_block_has_the_rows_of_single_samples(self, population, n):
        seeds = range(9)
        label, score = population.sample_many(n, [np.random.default_rng(seed) for seed in seeds])
        assert label.shape == score.shape == (9, n)
        for seed in seeds:
            y_true, y_proba = population.sample(n, rng=seed)
            assert (label[seed] == y_true).all()
            assert (score[seed] == y_proba).all()

    def test_types_of_the_scores(self):
        dtypes = [population.sample(5, rng=0)[1].dtype for population in self.POPULATIONS]
        assert dtypes == [np.float64, np.float64, np.float64, np.float32, np.float64, np.float64]

    def test_leaves_the_global_generator_alone(self):
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        self.POPULATIONS[0].sample(10)
        assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
        first, second = (self.POPULATIONS[0].sample(10)[1] for _ in range(2))
        assert (first != second).any()

    def test_complaints(self):
        with pytest.raises(ValueError, match="n must be a whole number >= 1"):
            self.POPULATIONS[0].sample(0)
        with pytest.raises(ValueError, match="rng must be None, a seed or"):
            self.POPULATIONS[0].sample(5, rng="7")


def test_mean_label():
    assert Population(BetaScores(3, 2), PowerCurve(2)).mean_label == pytest.approx(BetaScores(3, 2).moment(2))
    assert Population(SKEWED, IdentityCurve()).mean_label == pytest.approx(SKEWED.mean, abs=1e-12)
    assert Population(UniformScores(), StepCurve([0.3], [0.1, 0.9])).mean_label == pytest.approx(
        0.66, abs=1e-12
    )


@pytest.mark.parametrize("norm", [1, 2])
def test_the_efficiency_limit_is_the_sd_of_the_efficient_influence_function(norm):
    population = Population(BetaScores(2, 1), PowerCurve(2))
    label, score = population.sample(200_000, rng=0)
    gap = score - score**2
    influence = norm * gap ** (norm - 1) * (score - label) - (norm - 1) * gap**norm
    theory = population.efficiency_limit(1000, norm)
    error = population.true_error(norm)
    assert np.mean(influence) == pytest.approx(error**norm, abs=0.002)
    assert influence.std() / (norm * error ** (norm - 1)) / math.sqrt(1000) == pytest.approx(theory, rel=0.01)
    assert population.efficiency_limit(4000, norm) == pytest.approx(theory / 2)


def test_a_calibrated_population_has_no_efficiency_limit():
    assert math.isnan(Population(BetaScores(2, 1), IdentityCurve()).efficiency_limit(100))


class TestTrueValuesOfOtherMeasures:
    """Uniform scores whose frequency is the square of the score: too high by c - c^2 everywhere."""

    population = Population(UniformScores(), PowerCurve(2))

    def test_closed_forms(self):
        # The integral of c - c^2 up to q is q^2/2 - q^3/3, which rises to 1/6.
        def lost(q):
            return q**2 / 2 - q**3 / 3

        two_bins = quad(lambda q: lost(q) ** 2 + (1 / 6 - lost(q)) ** 2, 0, 1)[0]
        expected = {
            "ks": 1 / 6,
            "kuiper": 1 / 6,
            "atb": two_bins,
            "overconfidence": math.sqrt(1 / 30),
            "underconfidence": 0.0,
            "ew_mce": 1 / 4,
        }
        for name, value in expected.items():
            assert self.population.true_value(name) == pytest.approx(value, abs=2e-6), name
        assert self.population.true_value("overconfidence", norm=1) == pytest.approx(1 / 6, abs=2e-6)

    def test_kuiper_is_a_range_and_ks_a_maximum(self):
        # c - c^2 below 1/2 and its negative above: the sum rises to 1/12 and returns to 0.
        curve = FunctionCurve(lambda c: np.where(c < 0.5, c**2, 2 * c - c**2), breakpoints=[0.5])
        population = Population(UniformScores(), curve)
        assert population.true_value("ks") == pytest.approx(1 / 12, abs=2e-6)
        assert population.true_value("kuiper") == pytest.approx(1 / 12, abs=2e-6)
        assert population.true_value("overconfidence", norm=1) == pytest.approx(1 / 12, abs=2e-6)
        assert population.true_value("underconfidence", norm=1) == pytest.approx(1 / 12, abs=2e-6)

    @pytest.mark.parametrize("name", ["ece", "ace"])
    def test_aliases_have_the_true_l1_error(self, name):
        assert self.population.true_value(name) == pytest.approx(1 / 6, abs=2e-6)

    @pytest.mark.parametrize("name", ["atb", "ks", "kuiper", "smece", "skce", "overconfidence"])
    def test_large_samples_approach_them(self, name):
        """20,000 rows, within 5 Monte Carlo standard errors of 8 draws."""
        values = [
            truecal.calibration_error(
                *self.population.sample(20_000 if name != "skce" else 2000, rng=k), estimator=name
            )
            for k in range(8)
        ]
        spread = 5 * np.std(values, ddof=1) / math.sqrt(8)
        assert abs(np.mean(values) - self.population.true_value(name)) < spread + 2e-4


# -- the family c^d --------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, 3])
@pytest.mark.parametrize("error", [1e-6, 0.001, 0.02, 0.1])
@pytest.mark.parametrize(
    "scores",
    [
        None,
        truecal.simulation.BetaScores(2.8, 0.05),
        truecal.simulation.BetaScores(0.4, 0.3),
        truecal.simulation.AtomScores([0.2, 0.9, 1.0]),
    ],
    ids=["uniform", "skewed", "u-shaped", "atoms"],
)
def test_the_population_has_the_error_that_was_asked_for(scores, error, norm):
    population = population_with_error(error, scores, norm)
    assert population.true_error(norm) == pytest.approx(error, rel=1e-6)
    assert population.curve.d > 1


def test_no_error_is_the_calibrated_member():
    assert population_with_error(0).curve.d == 1


def test_the_greatest_error_on_uniform_scores_is_that_of_a_curve_at_zero():
    assert largest_error(truecal.simulation.UniformScores(), 2) == pytest.approx(1 / math.sqrt(3), abs=1e-4)
    assert largest_error(truecal.simulation.UniformScores(), 1) == pytest.approx(1 / 2, abs=1e-4)


@pytest.mark.parametrize("error", [0.6, 1, 50])
def test_an_error_beyond_reach_is_refused_with_the_range(error):
    with pytest.raises(ValueError, match=r"true_error must lie between 0 and 0\.577"):
        population_with_error(error)


@pytest.mark.parametrize("error", [-0.1, math.nan, "0.1", None])
def test_what_is_no_error_is_refused(error):
    with pytest.raises(ValueError, match="true_error must be a finite number >= 0"):
        population_with_error(error)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_every_alternative_has_the_error_that_was_asked_for(alternative):
    population = population_with_error(0.03, alternative=alternative)
    assert population.true_error() == pytest.approx(0.03, rel=1e-6)


def test_alternatives_are_described():
    assert "slope" in ALTERNATIVES["slope"].description
    with pytest.raises(ValueError, match="alternative must be one of"):
        population_with_error(0.1, alternative="none")


def test_the_largest_gap_of_a_population_may_be_asked_for_by_norm():
    population = Population(UniformScores(), PowerCurve(2))
    for name in ("ew_bin", "em_bin"):
        assert population.true_value(name, norm="max") == pytest.approx(0.25, abs=1e-6)
