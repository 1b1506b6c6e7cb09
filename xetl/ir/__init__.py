"""Parts that every pass uses to build and convert operations."""
