"""How a search learns to search: what each choice was worth, and how often it is made from then on. Pure."""
