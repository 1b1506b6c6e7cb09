"""Parts of `convert-xetile-to-xegpu`: the walk, and what each operation becomes."""
