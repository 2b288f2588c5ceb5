"""Makes distributions.jsonl: distribution functions, means and variances. Run with SciPy 1.15 or later: python make_distributions.py > distributions.jsonl"""
import json

import numpy as np
from scipy import stats

SHARES = np.linspace(0.02, 0.98, 49)


def row(name, args, law):
    """Values of the distribution function at its own quantiles, and its moments."""
    points = np.unique(law.ppf(SHARES))
    mean, variance = (float(x) for x in law.stats(moments="mv"))
    finite = [x if np.isfinite(x) else None for x in (mean, variance)]
    row = {"name": name, "args": args, "points": points.tolist(), "cdf": law.cdf(points).tolist()}
    print(json.dumps({**row, "mean": finite[0], "variance": finite[1]}))


for a, b in [(0.3, 0.4), (1, 1), (2.5, 0.7), (3, 8)]:
    row("beta", [a, b], stats.beta(a, b))
for n, p in [(1, 0.3), (7, 0.9), (40, 0.2), (300, 0.45), (10**6, 0.999)]:
    row("binomial", [n, p], stats.binom(n, p))
for df in [0.4, 1, 5.5]:
    row("chisquare", [df], stats.chi2(df))
for n, d in [(1, 12), (4, 9)]:
    row("f", [n, d], stats.f(n, d))
for k, scale in [(0.05, 1), (0.7, 2), (1, 1), (30, 0.5)]:
    row("gamma", [k, scale], stats.gamma(k, scale=scale))
for p in [0.02, 0.5, 1.0]:
    row("geometric", [p], stats.geom(p))
for good, bad, sample in [(5, 9, 4), (30, 70, 20), (400, 1000, 700), (1000, 400, 1390), (10**6, 10**6, 1000)]:
    row("hypergeometric", [good, bad, sample], stats.hypergeom(good + bad, good, sample))
for p in [0.1, 0.9, 0.999]:
    row("logseries", [p], stats.logser(p))
for n, p in [(0.5, 0.1), (3, 0.5), (40, 0.7)]:
    row("negative_binomial", [n, p], stats.nbinom(n, p))
for df, nonc in [(0.6, 2), (3, 0.5), (3, 20)]:
    row("noncentral_chisquare", [df, nonc], stats.ncx2(df, nonc))
for n, d, nonc in [(4, 12, 2), (1, 7, 5)]:
    row("noncentral_f", [n, d, nonc], stats.ncf(n, d, nonc))
for mean in [0.1, 4, 10, 11.5, 250, 1e9]:
    row("poisson", [mean], stats.poisson(mean))
for df in [1, 3.5, 50]:
    row("standard_t", [df], stats.t(df))
for kappa in [0.1, 4, 200]:
    row("vonmises", [0, kappa], stats.vonmises(kappa))
for mean, scale in [(1, 1), (2, 5), (10, 0.3)]:
    row("wald", [mean, scale], stats.invgauss(mean / scale, scale=scale))
for a in [1.3, 2.5, 6]:
    row("zipf", [a], stats.zipf(a))
row("triangular", [-1, 0, 4], stats.triang(0.2, loc=-1, scale=5))
row("standard_cauchy", [], stats.cauchy())
row("laplace", [1, 2], stats.laplace(1, 2))
row("logistic", [1, 2], stats.logistic(1, 2))
row("gumbel", [1, 2], stats.gumbel_r(1, 2))
row("rayleigh", [2], stats.rayleigh(scale=2))
row("weibull", [1.7], stats.weibull_min(1.7))
row("pareto", [3], stats.lomax(3))
row("power", [2.5], stats.powerlaw(2.5))
row("normal", [3, 2], stats.norm(3, 2))
row("lognormal", [0, 0.5], stats.lognorm(0.5))
row("exponential", [2], stats.expon(scale=2))
