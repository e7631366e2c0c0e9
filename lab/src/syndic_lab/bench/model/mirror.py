"""Mirror descent, which fits are compared with."""

from syndic.model.markov.optimise import RESTART, Floats, Limits, Problem, Zeros, dot, longest
from syndic.model.markov.passes import AnyPasses


def mirror(
    passes: AnyPasses, problem: Problem, logs: Floats, zeros: Zeros, limits: Limits
) -> tuple[Floats, float, int]:
    """Entropic mirror descent with a line search (McKenna, Sheldon and Miklau 2019).

    A step that gains too little is taken back in part by the next one: no copy of the cells is kept.
    """
    logs = logs.copy()
    residuals = problem.residuals(passes.start(logs, zeros))
    loss = before = problem.loss(residuals)
    step = 1 / (problem.total * max(problem.weights.max(initial=0.0), 1e-300))
    used = rounds = 0
    while not limits.reached(used, loss, problem):
        gradient = problem.weights * residuals
        step = min(2 * step, longest(passes, gradient))
        moved = 0.0
        while True:
            fresh = problem.residuals(passes.advance(-(step - moved) * gradient))
            moved, used = step, used + 1
            gained = loss - problem.loss(fresh)
            if gained >= 0.5 * dot(gradient, residuals - fresh) or used >= limits.iterations:
                break
            step /= 2
        logs -= moved * gradient
        residuals, loss, rounds = fresh, loss - gained, rounds + 1
        if rounds % RESTART == 0:
            residuals = problem.residuals(passes.start(logs, zeros))
        if rounds % 10 == 0:
            if before - loss < limits.tolerance * before:
                break
            before = loss
    return logs, loss, used
