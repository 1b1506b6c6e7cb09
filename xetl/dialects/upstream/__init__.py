"""Stock operations as MLIR 22 has them: names, rules and text.  One file a dialect."""
