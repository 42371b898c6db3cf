"""The obvious implementation of amago's network and update: the yardstick of `amago bench`.

It computes what amago computes (tests/test_bench_plain.py holds the two together) for real-valued
observations and discrete actions, in the way one would write it down first:

- every row of the padded batch goes through every layer, and the losses mask the padding;
- attention fills an L×L matrix of scores and masks it;
- the critics are a Python list;
- acting keeps no cache: each step runs the whole history again.
"""
