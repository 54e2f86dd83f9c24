"""What is done on a rented machine, and the bytes that go there and come back.

`python -m sandbox.box FOLDER` runs there, beside an engine of its own. The machine is inside the blast radius: what it
sends back is parsed here as untrusted bytes.
"""
