"""Reading Spark's errors."""


def cause_of(failure: Exception) -> str:
    """Return the line of a Spark error that says what happened, without the stack traces of two languages."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("penstock.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]
