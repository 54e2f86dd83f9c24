"""What travels into a judge's chamber. Nothing here is needed to judge; it makes the contract easy to keep."""
