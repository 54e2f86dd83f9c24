"""A page for campaigns in a browser: it reads ledgers, and never writes to one."""
