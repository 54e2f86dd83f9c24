"""Every call to a model goes through here: metered, capped, and with the key in one place only."""
