// error: X0701 2:1
