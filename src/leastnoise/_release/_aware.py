"""What a release says of answers whose queries were decided on the way: the two parts of their error."""

COLUMNS = {
    "answer": "the estimate, consistent across tables; biased where the data are not as even as the choices suppose",
    "noise_std": "its standard error from the noise, given the outcome of the choices",
    "approximation_std": "the rest of its error, estimated from what was paid for; empty where nothing tells",
}
POST_PROCESSING = "answer is the mechanism's estimate; it is %s. Everything after the measurements is post-processing and cost nothing."
NOT_PROMISED = "which queries were measured was decided on the way, so the error depends on the data, and no error was promised beforehand"
