"""Questions about operations and values that several passes ask."""
