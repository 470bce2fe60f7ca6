"""The only place that runs pack code: standard library only, nothing of harness."""
