"""Who touches which memory between two barriers: what `place-barriers` is made of."""
