"""All tuning constants of the core: what each means, what it was chosen on, and what it changes.

Three kinds stand apart. Those of the first change results: change one only with `python -m experiments accuracy`,
`coverage` and `power` before and after. Those of the second guard against rounding and overflow, and change results in
their last digits or in samples that hold no information. Those of the third change only time and memory.

Suites A to D are those of `truecal.simulation.suites`. "Convention" means that no data were looked at, "prototype" that
a value was taken over from one that was tuned on A, B, C1 and part of D1. The theory pages say more.
"""

from __future__ import annotations

import numpy as np

# --- Constants that change results --------------------------------------------------------------------------

# Bins (`_units`, `_levels`, the components of the test).

#: Rows per bin, on average, at the finest level: with fewer, a bin says little about its own noise. Clusters per bin
#: where rows depend on each other. Chosen on: prototype.
ROWS_PER_BIN = 6
#: The test has at most 2**10 bins. Convention.
MOST_TEST_LEVELS = 10

# Smooth curves (`_curves`).

#: Cells of equal mass that the curves are fitted to. Convention: finer ones change fits by less than their noise.
CURVE_CELLS = 256
#: Saturations s of the beta curve, and their prices in units of twice the log-likelihood: one other than 0 is one more
#: parameter. Chosen on: prototype.
SATURATIONS = np.array([0.0, 0.002, 0.03])
SATURATION_PRICES = np.where(SATURATIONS > 0, 2.0, 0.0)
#: Rows that the ridge is worth, which draws curves towards the identity. Chosen on: prototype.
RIDGE_ROWS = 0.5
#: Scores that are this close to 0 or 1 are taken for 0 or 1: no sample can tell how far a logit beyond 18 is wrong.
#: Convention.
CERTAIN = 1e-8

# Evidence (`_evidence`).

#: Energy of a block that holds error, in units of the noise of one degree of freedom times the root of their number.
#: Chosen on: A, B and C1 with 200 and 800 rows, among some 230 settings.
SLAB = 4.0
#: Prior odds of miscalibration are 9 N^(-1/4), but no more than with 200 rows. Chosen on: A, B, C1, D1 and 30 random
#: curves, among some 300 settings.
PRIOR_ODDS, PRIOR_FEWEST_ROWS = 9.0, 200.0
#: Degrees of freedom that the noise of a level may have, per bin that it adds; about 1.3 where every bin is noisy.
#: Chosen on: calibrated samples of rounded scores, which were rejected without it.
MOST_FREEDOM = 1.5
#: Share of the increment before that a level may hold without evidence: for jumps it is halved from level to level.
#: Chosen on: with the prior odds.
UNSEEN_SHARE = 0.5
#: Under calibration P(Z > 0.13 / alpha) was about alpha or less, so that 0.13 / Z is a p-value. Chosen on: calibrated
#: samples of six kinds of scores with 100 to 2,000 rows (experiments/agreement).
EVIDENCE_SCALE = 0.13

# The l1 error (`_error`).

#: Sharpness a of the smooth sign: 2 standard deviations count as nearly certain. Chosen on: prototype.
SHARPNESS = 2.0

# Lower limits (`_limits`).

#: A lower limit is positive only if the closed-form p-value of calibration is at most this many times its tail. Chosen
#: on: A, B and C1, so that the test rejects beside a positive lower limit but in about 1 of 1,000 samples.
LIMIT_EVIDENCE = 0.5

# Upper limits (`_intervals`, `_upper`).

#: Exponent of the number of intervals of scores: the rate at which curves of smoothness 1 can be told from the
#: identity (Ingster). Chosen on: theory.
INTERVAL_RATE = 0.4
#: Every distinct score is an interval if each has this many rows on average, and if they are not more than this many
#: times the number of intervals of continuous scores. Chosen on: the populations of experiments/honest.
ROWS_PER_SCORE, MOST_SCORES = 9, 7
#: There are at least this many intervals. Chosen on: with the two before.
FEWEST_INTERVALS = 4
#: Energy between the halves of intervals counts as far as it exceeds this many standard deviations of its noise. Chosen
#: on: the populations of experiments/honest.
CLEAR_ENERGY = 0.7
#: Quantile of the statistic of a calibrated model below which an observed one does not count. Chosen on: the same.
LUCKY_QUANTILE = 0.2
#: Effective rows of an interval below which a gamma law of the statistic counts beside the exact one, between whose few
#: possible values the observed one falls. Chosen on: 15 clusters of 20 rows with hardly an event, where an error at the
#: limit passed in 14% of samples without; of 32 designs with clusters it changes that one.
FEW_EFFECTIVE_ROWS = 8
#: Clusters with the rarer outcome, or with the one that scores make unlikely, from which the dependence of their labels
#: is estimated. With fewer, a cluster counts as one row, and no lower limit is positive. Chosen on: errors of 0.02 and
#: 0.03 in 40 to 60 clusters with one label each, or an intraclass correlation of 0.5. With 0, 1 and 4 they were shown
#: to be smaller in up to 36%, 10% and 7% of 150 samples, at a level of 5%.
FEWEST_HOLDERS = 4

# Clusters (`_units`, `_null`).

#: Fewer clusters say too little about how much clusters differ. Convention.
MIN_CLUSTERS = 15
#: So do clusters whose effective number is no larger: Student's t has no variance then. Chosen on: theory.
MIN_EFFECTIVE_CLUSTERS = 3.0
#: Effective number of clusters, out of G, that is needed to show how much clusters differ: the sum of the first and of
#: the second divided by G, which is 4 for 15 clusters and 3 for 45. Of fewer than 15 clusters it is that share, because
#: about a third of the number counts in effect even if all are alike. Chosen on: 20 calibrated designs with 300 draws
#: each, changed once after a look at 23 others, and then checked on 12 that had played no part.
FLIP_FEWEST, FLIP_USUAL = (2.5, 22.5), 15
#: How the variance between clusters follows the variance of a label: the power of r is the first and the second divided
#: by G, up to 40 clusters. With a power of 1 and 40 clusters the test hardly finds risks of twice the rate of events;
#: with 0 it finds them, at a level of up to 0.09. Chosen on: the same designs.
FLIP_POWER, FLIP_MOST = (0.5, 10.0), 40
#: A label is unlikely if its probability is at most the first number. If rows with such labels have this share of the
#: weight, they are looked at too, not only the rarer label. Chosen on: calibrated scores of .1, .5 and .9 in 10 to 60
#: clusters with one label each, where the test rejected in 34% to 10% of 300 samples without (4% or less with), and
#: 63 designs of 15 to 200 clusters with an intraclass correlation of 0.05 to 0.3, where the mean power falls from .81
#: to .79 (.75 without the share).
FLIP_UNLIKELY, FLIP_SHARE = 0.2, 0.5
#: With random signs for fewer clusters than this no p-value is 0.05 or less. Chosen on: theory.
FEWEST_SIGNS = 6
#: A p-value up to this counts although the clusters hold little information, as it allows for any dependence.
#: Convention.
CLEAR_PVALUE = 0.05

# The test of calibration (`_omnibus`, `_null`).

#: Weights of the families of components; those of smooth tests and of levels of bins are shared among their members.
#: Chosen on: the cases of experiments/power that are named "tuned".
TEST_WEIGHTS = {"level": 1.0, "spread": 1.1, "logistic": 0.4, "smooth": 0.4, "waves": 0.8, "bins": 0.5}
#: Number of terms of the smooth tests, and which of them are those of waves. Chosen on: the same.
SMOOTH_TERMS, WAVE_TERMS = (4, 8, 16), slice(2, 8)
#: Fewer degrees of freedom count as so many. A sum of squares that is hardly ever more than 0, as that of scores next
#: to 0 and 1, has nearly none, and its usual value would be taken for a tiny p-value. Chosen on: such scores.
FEWEST_DEGREES = 0.05
#: Draws from which the tail of T is extrapolated, and the index of the tail. Chosen on: n from 50 to 20,000 and eight
#: kinds of scores, where it was conservative down to p = 0.0005.
TAIL_DRAWS, TAIL_INDEX = 10, 1.65
#: Number of cells of equal mass beyond which scores are grouped; up to so many distinct scores each is a cell.
#: Convention.
TEST_CELLS = 2048
#: Up to so many rows one label is drawn for each row; beyond, trials in excess of the second number are merged into
#: narrow cells and drawn as binomials, which makes variances too large by less than 1%. Convention, for speed.
MOST_DRAWN_ROWS, MOST_TRIALS = 1 << 17, 4096
#: More than twice as many clusters are merged into so many blocks, which are independent too and tell the variance of a
#: sum to within 2%, so that neither estimates nor draws take longer the more clusters there are. Convention.
MOST_BLOCKS = 4096

#: With a judge: gold rows in a cell, on average, from which on their sum is taken to be normal. Convention.
GOLD_PER_CELL = 20

# The band of rising curves (`_limits`).

#: Number of cells of equal mass beyond which scores are grouped. Chosen on: width for n from 300 to 100,000.
BAND_CELLS = 400

# Comparison of two models (`_combine`).

#: Fewer rows may be ordered alike by chance. Convention.
FEWEST_ORDERED_ROWS = 20

# --- Guards, which change last digits, or samples without information ---------------------------------------

#: Half of this is the smallest distance from 0 and 1 at which a logit is taken.
SMALLEST_SCORE = 2.0**-53
#: Gain in log-likelihood below which the fits of curves stop, and the loss that may be rounding.
FIT_TOLERANCE, FIT_ROUNDING = 1e-7, 1e-9
#: Largest logarithm of a Bayes factor, whose powers must not overflow.
LARGEST_LOG_FACTOR = 600.0
#: A smaller p-value of a component counts as this one: beyond, differences say nothing.
SMALLEST_PVALUE = 1e-300
#: Upper limits are exact to this share of themselves, and bracketed in this many steps at most; then the last share is
#: added, so that rounding in p-values does not lift them above the tail again.
LIMIT_TOLERANCE, LIMIT_MOST_STEPS, LIMIT_MARGIN = 1e-9, 40, 1e-7
#: With fewer effective rows than this the p-value may rise with the error. It is looked at beyond the error too: at
#: ratios to the largest error that are powers of the second number, up to the third one times the error.
RISING_ROWS, RISING_RATIO, RISING_REACH = 25, 1.02, 1.4
#: Steps of the grid of the convolution up to the observed statistic; changes of p with more are below 0.01 of it.
GRID_STEPS = 448
#: Most steps beyond t, for what the sampling of scores adds: where t is next to 0 there could be millions.
MOST_STEPS = 1 << 16
#: Up to this many intervals all are convolved; beyond, all but the one that is varied have a gamma law.
MOST_CONVOLVED = 24
#: Rates that are looked at in each interval, with two and with three intervals.
RATES_BY_INTERVALS = {2: 33, 3: 15}
#: Number of possible samples up to which all are looked at, with two or three intervals.
MOST_ENUMERATED = 2**12
#: Curves whose exact probability is computed, by their approximate one. With up to so many intervals, whose few rows
#: may make it poor, these are all with one interval moved, and the last number of others.
CURVES_KEPT, FEW_INTERVALS, CURVES_KEPT_FEW = 3, 8, 12
#: With labels that are not the truth: equally probable parts of a normal law, whose middles stand for it.
NORMAL_PARTS = 256
#: What the transform of the convolution is damped by at the end of the grid, so that nothing wraps around.
DAMPING = 20.0
#: Standard deviations of a number of events that are looked at, and at most how many points for each of them.
EVENT_REACH, EVENT_POINTS = 8.0, 100.0
#: Smallest and largest factor on the number of rows that is worth reporting.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-3, 1e4

# --- Constants that change only time and memory -------------------------------------------------------------

#: Score groups up to which each is a unit; beyond, the bins of the finest level are the units.
MOST_SINGLE_SCORES = 4096
#: With clusters, the finest level has at most 2**10 bins: covariances of all pairs of bins are needed.
MOST_LEVELS_CLUSTERED = 10
#: Share of entries other than 0 up to which products of sparse matrices are quicker than those of dense ones, and the
#: rows of such a matrix that become dense at once.
SPARSE_SHARE, DENSE_ROWS = 0.05, 1 << 12
#: Rows that are added up at once: what is worked on stays in the cache of a processor.
PIECE_ROWS = 1 << 14
#: Units beyond which smooth curves are interpolated.
MOST_EXACT_UNITS = 4096
#: Rows of samples that are analysed together.
ROWS_TOGETHER = 1 << 16
#: Normal quantile of 5%, and by what share of itself an upper limit changes with it: a first guess only.
GUESS_QUANTILE, GUESS_SLOPE = -1.645, 0.2
#: Labels drawn at once, a byte each, which keeps a block in the cache; and binomials drawn at once: more, because many
#: draws from the same distribution share a table.
LABELS_AT_ONCE, BINOMIALS_AT_ONCE = 1 << 21, 1 << 22
#: Multiplications up to which OpenBLAS uses one thread.
ONE_THREAD = 1 << 18
