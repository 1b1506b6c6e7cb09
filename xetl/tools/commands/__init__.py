"""The subcommands of ``xetl``, one a file; `xetl.tools.cli` finds them by name."""
