"""How a function is declared, and what a call of one goes through."""
