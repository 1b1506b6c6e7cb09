"""Forms of operations that only texts have, as forms that the front end makes."""
