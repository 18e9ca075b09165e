"""Private selections that the experiments compare and that no release can run, with their proofs beside them."""
