"""Why a series does not carry out a step, in sentences; nothing is decided by it, and nothing of a row gets here."""

from leastnoise._accounting import Budget, Charge, charge_text

OTHER_STEP = "The only step of a series must be of its own domain and privacy. Make the plan again; nothing was spent."
NO_SQUARES = (
    "Squares of Gaussian steps are added up within (epsilon, delta), for steps that are decided on the way. "
    "Make the plan again; nothing was spent."
)
NO_ONLY_STEP = "What is drawn period by period is one step that is known beforehand. Make the plan again; nothing was spent."
OTHER_PAYMENT = "The entry of this receipt is not the payment of this plan. Resume the release with its own plan and receipt."
NOT_PAID = "Only the steps that were paid for are carried out; got a choice or a search. Declare a series within its whole budget."
ONCE = "Only the step that was paid for is carried out, and once. Declare a series without an only step."
CHANGED = "The step is not what was paid for: its queries or their noise were changed. Nothing was drawn."
NOT_GAUSSIAN = "Steps that share out mu squared have rounded Gaussian noise; got another. Nothing was drawn."
NOT_ALONG = "Only what was planned along an attribute is drawn period by period. Declare its only step and the attribute."
TWO_THREADS = "Another thread asks for periods of this series. Resume it, and ask in one thread. Nothing was drawn."
OTHER_PROCESS = "A series counts its steps in the process that made it; got a step in another one. Nothing was drawn."
OTHER_STEPS = "This version asks for other steps than those that were recorded. Resume it with the version that began it."
OTHER_UNIT = "A step protects {step}, its series {series}. Make the plan with the series' unit."
NO_BOUND = (
    "Where a column names the units, a series needs a bound on a unit's rows in each of the periods of {along!r} (max_per_cell), "
    'of which max_rows holds all, and late = "drop"; rows that count on arrival must each be a unit.'
)
NO_PRIVATE_FILE = (
    "The private file {file} is not there, is damaged, or is not of this series as the ledger has it. Later periods need its "
    "counts of the closed ones, which rows that changed since cannot give again. Restore it. Without it nothing later can be "
    "drawn; what was drawn can still be published, by `leastnoise resume`."
)
STRANGE_TERMS = "Domain, Privacy, three str, Measurements or None"


def too_much(budget: Budget, request: Charge, available: Charge) -> str:
    """The sentence for a step that asks for more than is left."""
    return (
        f"A step asks for {charge_text(budget, request)}, but only {charge_text(budget, available)} of this release's budget is "
        "left. Nothing was drawn. Share the budget out among the steps."
    )
